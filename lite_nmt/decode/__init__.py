"""From source text to target text."""
