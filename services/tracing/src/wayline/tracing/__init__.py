"""Projects the log and the spans to Postgres: trace trees, steps, the money ledger."""
