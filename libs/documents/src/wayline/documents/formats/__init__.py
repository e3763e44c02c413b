"""One file a format: its bytes become text."""
