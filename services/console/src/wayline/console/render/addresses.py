"""Parts of addresses, also of names that hold half a character, which JSON may hold and no address can. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote, urlencode


def query_of(given: Mapping[str, str] | Sequence[tuple[str, str]]) -> str:
    """Return the query of an address."""
    return urlencode(given, errors="replace")


def path_of(text: object) -> str:
    """Return a text as a part of a path or of a query, its slashes kept."""
    return quote(str(text), errors="replace")
