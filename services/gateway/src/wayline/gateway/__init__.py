"""The HTTP front door: jobs, events, documents, search, traces."""
