"""A prompt as caches and token counters see it."""
