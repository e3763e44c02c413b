"""The HTTP front gateway: jobs, events, documents, search, traces."""
