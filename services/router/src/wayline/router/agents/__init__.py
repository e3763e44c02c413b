"""The agents that tenants save: checked, kept by version, restored."""
