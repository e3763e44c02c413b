"""Bytes to a provider and back: the SDKs' clients, streams cut into events, and what can go wrong on the way."""
