"""The routes of the gateway, for all gateways that a fork server forks: FastAPI works them out for half a second."""

from __future__ import annotations

from importlib import import_module

# By its name: a library imports no service.
settings = import_module("wayline.gateway.settings").Settings()
import_module("wayline.gateway.application").routes(settings.body_max_bytes, settings.document_max_bytes)
