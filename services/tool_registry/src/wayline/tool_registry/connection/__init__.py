"""One connection with an MCP server: opened over HTTP or with a program, its tools listed, its failures read."""
