"""JSON as models write it: wrapped, unfinished or broken, read where there is no doubt what was meant."""
