"""Reads the streams in batches: records of logs, and spans that services export."""
