"""Embeddings: who makes vectors of texts, what they cost, and which set of them a search reads."""
