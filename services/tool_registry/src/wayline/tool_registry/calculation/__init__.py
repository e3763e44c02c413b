"""What the built-in tools compute: arithmetic and dates. Pure: the time comes in as an argument."""
