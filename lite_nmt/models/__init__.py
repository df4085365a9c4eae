"""Whole models, each a function of its configuration."""
