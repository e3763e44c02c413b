"""The tables in Postgres: the ledger of calls, servers of tenants, their definitions and their tokens."""
