"""Documents in, passages out: ingest, chunk, embed, hybrid search."""
