"""The pages about a tenant's settings, keys, limits and changes."""
