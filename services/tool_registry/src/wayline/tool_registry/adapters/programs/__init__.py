"""Programs of tenants, each confined to a room of its own."""
