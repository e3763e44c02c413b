"""The MCP servers that tools are called on: built in, of the installation, of tenants and of single users."""
