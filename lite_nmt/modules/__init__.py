"""Mixers and the layers built from them."""
