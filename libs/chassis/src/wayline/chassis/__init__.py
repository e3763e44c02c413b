"""Runs a service's handlers on the bus: validate, trace, handle, publish, ack."""
