"""NATS and Postgres run from their wheels, as child processes that end with us."""
