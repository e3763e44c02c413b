"""The model that a job runs on, and what that choice depends on."""
