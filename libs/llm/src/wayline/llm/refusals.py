"""What a provider says of a refusal beside that it is one: its category, in the provider's own words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from wayline.llm.model import Finished

CATEGORY_MAX_CHARS = 200
PLAIN = frozenset({"", "refusal", "refused", "content_filter", "content_filtered", "stop", "end_turn", "tool_calls"})
"""Words for why a model stopped that say no more than that it refused, or not even that."""
SAID = ("category", "explanation")
"""Fields of details that are words."""


def told(finished: Finished, word: object, *details: object) -> Finished:
    """Return an answer with the category of its refusal, where it is one."""
    named = category(word, *details) if finished.stop_reason == "refused" else ""
    return replace(finished, refusal=named) if named else finished


def category(word: object, *details: object) -> str:
    """Return a refusal's category from the provider's word for it and from details in any of its forms; empty: none."""
    said = str(word or "").strip()
    named = [] if said.lower() in PLAIN else [said]
    for detail in details:
        named.extend(_named(detail))
    return ", ".join(dict.fromkeys(filter(None, named)))[:CATEGORY_MAX_CHARS]


def _named(detail: object) -> Iterator[str]:
    """Yield what details name: words of fields that are words, and filters that were met (`hate: high`)."""
    fields: dict[str, Any] = detail if isinstance(detail, dict) else {}
    for field in SAID:
        if isinstance(fields.get(field), str):
            yield " ".join(fields[field].split())
    for name, found in fields.items():
        if isinstance(found, dict) and (found.get("filtered") is True or found.get("detected") is True):
            severity = found.get("severity")
            yield f"{name}: {severity}" if isinstance(severity, str) else name
