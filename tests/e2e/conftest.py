"""Installations whose servers have run once: what a first start shows is tested in integration/standalone."""

from ..integration.standalone.conftest import empty, fresh, prepared, shared

__all__ = ["empty", "fresh", "prepared", "shared"]
