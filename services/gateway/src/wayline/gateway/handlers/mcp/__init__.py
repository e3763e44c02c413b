"""Wayline as an MCP server: tools, agents and resources of the key's tenant."""
