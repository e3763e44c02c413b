"""Documents: what comes in is read, cut, embedded and stored, and given again."""
