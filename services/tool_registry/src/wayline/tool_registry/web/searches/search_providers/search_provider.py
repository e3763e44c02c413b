"""The protocol of a search provider."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Protocol

from wayline.documents import without_controls
from wayline.tool_registry.web.searches.search_request import SearchHit, SearchRequest

TITLE_CHARS_MAX = 300
SNIPPET_CHARS_MAX = 1_000

_TAG = re.compile(r"</?(?:strong|b|em|i|mark|span)\b[^>]{0,200}>", re.I)


class UnusableAnswer(Exception):
    """An answer that is none of this provider's."""


@dataclass(frozen=True, slots=True)
class ProviderCall:
    """One HTTP request to a provider."""

    url: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = None


class Provider(Protocol):
    """A search provider: pure, but for its address and its key."""

    def __init__(self, url: str | None, key: str | None) -> None: ...

    def call(self, request: SearchRequest, *, count: int, today: date) -> ProviderCall:
        """Return the HTTP request that asks for hits."""
        ...

    def limits_dates(self, request: SearchRequest) -> bool:
        """Return whether the provider itself leaves out what is of another time."""
        ...

    def hits(self, request: SearchRequest, answer: Any) -> list[SearchHit]:
        """Read a decoded answer. Raises UnusableAnswer."""
        ...


def items(answer: Any, *path: str) -> list[Mapping[str, Any]]:
    """Return the objects of a list inside an answer; none where it is missing. Raises UnusableAnswer."""
    value = answer
    for name in path:
        if not isinstance(value, dict):
            raise UnusableAnswer(f"its answer has no object that holds {name!r}")
        value = value.get(name)
        if value is None:
            return []
    if not isinstance(value, list):
        raise UnusableAnswer(f"{'.'.join(path)} of its answer is no list")
    return [one for one in value if isinstance(one, dict)]


def text(value: Any, limit: int = SNIPPET_CHARS_MAX) -> str:
    """Return a text without the marks that providers put around what was searched for."""
    plain = " ".join(without_controls(html.unescape(_TAG.sub("", value))).split()) if isinstance(value, str) else ""
    return plain if len(plain) <= limit else f"{plain[: limit - 1]}…"


def address(value: Any) -> str | None:
    """Return an address, with a scheme where it has none; None for what is no text."""
    if not isinstance(value, str):
        return None
    return f"https:{value}" if value.startswith("//") else value


def day(*values: Any) -> date | None:
    """Return the first value that begins with a date."""
    for value in values:
        if isinstance(value, str):
            try:
                return date.fromisoformat(value[:10])
            except ValueError:
                continue
    return None


def with_urls(hits: Iterable[SearchHit]) -> list[SearchHit]:
    """Return the hits that say where they are."""
    return [hit for hit in hits if hit.url]
