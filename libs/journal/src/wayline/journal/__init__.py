"""A job's event log on JetStream, and the state it folds to."""
