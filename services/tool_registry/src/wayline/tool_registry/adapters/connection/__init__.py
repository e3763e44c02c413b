"""Connect to an MCP server over HTTP or as a program, list its tools, and read its failures."""
