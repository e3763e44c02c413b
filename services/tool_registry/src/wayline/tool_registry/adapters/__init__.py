"""The outside systems: MCP servers and Postgres."""
