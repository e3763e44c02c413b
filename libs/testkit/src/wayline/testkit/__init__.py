"""Real NATS and Postgres fixtures, scripted models and fault injectors."""
