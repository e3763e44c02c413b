"""Postgres: pool, migrations, named queries, row-level security."""
