"""Models: the catalogue of a tenant, which of them cannot be called now, the files that they may be given."""
