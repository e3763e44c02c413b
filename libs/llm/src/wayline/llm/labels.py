"""Names of models as a metric's labels: a job may name any model, and a label must not have any number of values."""

from __future__ import annotations

from functools import cache

from wayline.llm.catalogue import PROVIDERS, facts

OTHER = "other"
OWN_MAX = 100
"""Names that the catalogue does not have and that stand for themselves; later ones are `other`."""


class ModelLabels:
    """The catalogue's names, and the first of those that it does not have: a deployment's own models."""

    def __init__(self, *, own_max: int = OWN_MAX) -> None:
        self._own: set[str] = set()
        self._own_max = own_max

    def __call__(self, model: str) -> str:
        """Return the label of a model's name, with or without its provider."""
        if model in _listed() or model in self._own:
            return model
        if len(self._own) >= self._own_max:
            return OTHER
        self._own.add(model)
        return model


def provider_label(provider: str) -> str:
    """Return the metric label of a provider that a job names."""
    return provider if provider in PROVIDERS else OTHER


@cache
def _listed() -> frozenset[str]:
    return frozenset(name for provider, model, _ in facts() for name in (model, f"{provider}/{model}"))
