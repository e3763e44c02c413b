"""Tasks that end for sure, repeat, try again, or share one fetch."""
