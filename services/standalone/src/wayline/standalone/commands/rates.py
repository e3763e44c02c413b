"""Rates on the command line: `600`, `600:100` or `none`, and whose they are."""

from __future__ import annotations

import re
from typing import Any

from wayline.standalone.commands.arguments import fail

PLACES = tuple(f"{whose}.{meter}" for whose in ("tenant", "key", "user") for meter in ("requests", "jobs"))
UNLIMITED = "none"


def rate_of(text: str) -> dict[str, Any]:
    """Return the rate that is written as a number a minute, with or without how many at once."""
    if text == UNLIMITED:
        return {"per_minute": None}
    found = re.fullmatch(r"([0-9]{1,7})(?::([0-9]{1,7}))?", text)
    if found is None:
        fail(f"{text!r} is no rate: write how many a minute, such as 600 or 600:100, or none")
    return {"per_minute": int(found[1]), "burst": int(found[2]) if found[2] else None}


def read_place(text: str) -> tuple[str, str]:
    """Return whose rate of what is meant."""
    if text not in PLACES:
        fail(f"there is no limit {text!r}: there are {', '.join(PLACES)}")
    whose, _, meter = text.partition(".")
    return whose, meter


def read_rate(change: str) -> tuple[str, str, dict[str, Any]]:
    """Return whose rate of what is set, and to which one."""
    place, equals, rate = change.partition("=")
    if not equals:
        fail(f"{change!r} is no WHOSE.WHAT=RATE, such as tenant.requests=6000")
    return *read_place(place), rate_of(rate)
