"""Names of models as a metric's labels: a job may name any model, and a label must not have any number of values."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final

from wayline.llm.catalogue import PROVIDERS, facts

OWN_MAX: Final = 100
"""Names that the catalogue does not have and that stand for themselves: a deployment's own models."""


class ModelLabels:
    """The catalogue's names, and the first of those that it does not have, as `own` bounds them."""

    def __init__(self, own: Callable[[str, str], str]) -> None:
        self._own = own

    def __call__(self, model: str, tenant: str = "") -> str:
        """Return the label of a model's name, with or without its provider, that a job of this tenant brings."""
        return model if model in _listed() else self._own(model, tenant)


def provider_label(provider: str) -> str:
    """Return the metric label of a provider that a job names."""
    return provider if provider in PROVIDERS else "other"


@cache
def _listed() -> frozenset[str]:
    return frozenset(name for provider, model, _ in facts() for name in (model, f"{provider}/{model}"))
