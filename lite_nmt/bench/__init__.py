"""The same translations by other engines, measured alike."""
