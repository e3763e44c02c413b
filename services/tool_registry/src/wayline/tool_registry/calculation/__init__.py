"""Compute what the built-in tools are asked: arithmetic and dates. Pure: the time comes in as an argument."""
