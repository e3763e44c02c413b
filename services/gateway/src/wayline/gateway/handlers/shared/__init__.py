"""Parts that the handlers share: the caller and its rights, the read of a job, a submission."""
