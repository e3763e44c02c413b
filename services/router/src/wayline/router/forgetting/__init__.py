"""Forgets users, subjects and jobs: a durable walk over all stores, with a receipt."""
