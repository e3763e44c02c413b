"""Suggest known names for one that is not known."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

CUTOFF = 0.4
"""How alike two names must be, of 1, before one is suggested for the other."""


def nearest_names(name: str, known: Iterable[str], *, most: int = 1, cutoff: float = CUTOFF) -> list[str]:
    """Return the known names that are spelled most like a name, the most alike first."""
    return get_close_matches(name, list(known), n=most, cutoff=cutoff)
