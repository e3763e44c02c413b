"""Recorded jobs decided, or run, once more without a network."""
