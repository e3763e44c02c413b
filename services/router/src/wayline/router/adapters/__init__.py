"""The router's outside systems: Postgres, the bus, retrieval, and what executors say of providers."""
