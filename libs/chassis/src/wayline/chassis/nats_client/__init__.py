"""What nats-py lacks: quick headers, subscriptions by callback, bulk reads."""
