"""Run calls of tools: each key once, with its outcome in the ledger."""
