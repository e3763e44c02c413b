"""Keywords for what no other part of the schema has looked at."""

from __future__ import annotations

from typing import Any

from wayline.schemas.keywords.objects import unexpected
from wayline.schemas.keywords.parts import Make, Part
from wayline.schemas.nodes import Check, Evaluated, Run
from wayline.schemas.problems import says


def _properties(part: Part) -> Check:
    node = part.node(part.value)

    def check(value: Any, run: Run, seen: Evaluated | None) -> bool:
        if not isinstance(value, dict) or seen is None:
            return True
        run.budget.spend(1 + len(value))
        extras = [name for name in value if name not in seen.names and not node.fits(value[name], run)]
        seen.names.update(value)
        return not extras or run.fail(_not_allowed, extras)

    return check


def _not_allowed(extras: list[str]) -> str:
    return f"Unevaluated properties are not allowed ({unexpected(extras)})"


def _items(part: Part) -> Check:
    node = part.node(part.value)
    unexpected_items = says("has items that are not expected")

    def check(value: Any, run: Run, seen: Evaluated | None) -> bool:
        if not isinstance(value, list) or seen is None:
            return True
        run.budget.spend(1 + len(value))
        fine = all(number in seen.items or node.fits(item, run) for number, item in enumerate(value))
        seen.items.update(range(len(value)))
        return fine or run.fail(unexpected_items, value)

    return check


KEYWORDS: dict[str, Make] = {"unevaluatedItems": _items, "unevaluatedProperties": _properties}
"""Only schemas that hold one of these keep track of what was looked at."""
