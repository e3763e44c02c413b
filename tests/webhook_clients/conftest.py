"""The notifier and receivers as its own tests have them."""

from ..integration.notifier.conftest import hooks

__all__ = ["hooks"]
