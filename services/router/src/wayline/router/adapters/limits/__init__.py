"""Adapters of limits: the share of each tenant in signals, bytes and jobs, and the free part of the log."""
