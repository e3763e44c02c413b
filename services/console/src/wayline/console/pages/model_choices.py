"""Models to choose from: by provider, those first that can be called. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

TIERS: Final = ("flash", "standard", "premium", "reasoning")


@dataclass(frozen=True, slots=True)
class ModelGroup:
    """The models of one provider."""

    provider: str
    models: list[tuple[str, str]]
    """Of each its `provider/model`, and its title."""
    usable: bool = True


def model_groups(found: Mapping[str, Any]) -> list[ModelGroup]:
    """Return the models of an answer of `GET /v1/models` by provider."""
    usable = frozenset(found["usable"])
    groups: dict[str, ModelGroup] = {}
    for card in found["models"]:
        name = f"{card['provider']}/{card['model']}"
        group = groups.setdefault(card["provider"], ModelGroup(card["provider"], [], name in usable))
        group.models.append((name, f"{card['model']} · {card['tier']}"))
    return sorted(groups.values(), key=lambda group: (not group.usable, group.provider))
