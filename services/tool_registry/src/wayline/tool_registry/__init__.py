"""Every tool is an MCP tool; every call has a ledger row."""
