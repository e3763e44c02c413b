"""One MCP server: kept connected, its tools learnt, called."""
