"""Decide for the web tools: which extracts of a page answer, what robots may fetch, which sites a category has."""
