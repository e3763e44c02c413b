"""When jobs run: what is paused, how many run at once, and whose turn it is."""
