"""Search: passages found by words, by vector, or by both."""
