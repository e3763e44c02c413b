"""Describe the tools that servers offer: name, effect, schema, approved definition."""
