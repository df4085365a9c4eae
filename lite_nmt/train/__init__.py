"""Training: a run folder in, a trained checkpoint out."""
