"""Programs of tenants: which may run, the jail that each runs in, and what starts, guards and confines it."""
