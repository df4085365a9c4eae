"""LightConv: a band of taps that stay the same over time."""
