"""Programs of tenants, each confined to a jail of its own."""
