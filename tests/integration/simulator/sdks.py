"""The providers' SDKs, imported when first used: every worker reads these tests, and one of them runs them."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Sdk:
    """A module that is imported when something of it is first asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        # Pytest looks at everything in a module for marks of its own.
        if attribute.startswith(("_", "pytest")):
            raise AttributeError(attribute)
        return getattr(import_module(self._name), attribute)


anthropic, openai = Sdk("anthropic"), Sdk("openai")
