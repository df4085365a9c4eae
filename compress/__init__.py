"""Smaller checkpoints: pruning, k-means codebooks, packing."""
