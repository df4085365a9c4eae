"""DynamicConv: a band of taps that each step predicts for itself."""
