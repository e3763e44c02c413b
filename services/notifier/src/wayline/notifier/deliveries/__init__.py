"""Deliveries: claimed, signed, sent, tried again, given up."""
