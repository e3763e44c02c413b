"""One file for each outside system that a job needs, and what bounds its use."""
