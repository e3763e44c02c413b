"""The outside systems: MCP servers, services on the bus, the web, models of images, and Postgres."""
