"""Attention whose heads each have their own span."""
