"""Performs what a job needs: calls models and tools, parks, ends."""
