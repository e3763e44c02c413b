"""What the registry does with each message: calls of tools, and servers of tenants."""
