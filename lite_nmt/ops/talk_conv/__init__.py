"""TaLK Convolutions: a soft box whose two ends each step predicts."""
