"""Search the web with one of several providers."""
