"""The servers that a tenant has: what it may save, the table, those that run, and what is asked about them."""
