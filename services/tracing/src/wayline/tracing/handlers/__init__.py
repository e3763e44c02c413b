"""Handlers: one coroutine per question that tracing answers on the bus."""
