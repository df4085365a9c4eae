"""The banded product and the three producers of its weights."""
