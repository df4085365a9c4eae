"""Parallel text: reading, vocabulary, batches, and a corpus that the project generates itself."""
