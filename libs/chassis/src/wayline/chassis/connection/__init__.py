"""One connection to the bus, and what is published, asked and put aside on it."""
