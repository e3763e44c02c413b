"""The wire formats: a request read, a reply written."""
