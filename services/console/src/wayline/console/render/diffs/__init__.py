"""Differences of texts: unified diffs that tools return, and two versions of one text."""
