"""The search box of the list of jobs: words, and conditions such as `agent:support` or `cost:>0.1`. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from wayline.console.render.addresses import query_of

NAMES: Final = {
    "status": "status",
    "agent": "agent",
    "user": "user_id",
    "session": "session_id",
    "model": "model",
    "tier": "tier",
    "lane": "lane",
    "tool": "tool",
    "tag": "tag",
    "error": "error_code",
    "waiting": "waiting_for",
    "schedule": "schedule",
    "fingerprint": "fingerprint",
    "parent": "parent",
    "origin": "origin",
    "feedback": "feedback",
    "sort": "sort",
}
"""What stands before the colon, and the parameter of `GET /v1/jobs` that it becomes."""
SEVERAL: Final = frozenset({"status", "agent", "waiting_for", "tag"})
RANGES: Final = {"cost": "cost", "seconds": "seconds"}
TIMES: Final = {"since": "since", "until": "until"}
_AGE = re.compile(r"(\d{1,4})([mhdw])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_PART = re.compile(r'(?:(\w+):)?(?:"([^"]*)"|(\S+))')


@dataclass(frozen=True, slots=True)
class Chip:
    """One condition, and the address of the list without it."""

    text: str
    without: str


@dataclass(frozen=True, slots=True)
class JobSearch:
    """What a search box asks for."""

    text: str
    parameters: dict[str, str | list[str]] = field(default_factory=dict)
    chips: tuple[Chip, ...] = ()
    problems: tuple[str, ...] = ()


def parse(text: str, *, now: datetime, zone: tzinfo = UTC) -> JobSearch:
    """Read a search box; what is not understood is said and not searched for. `zone`: of moments that name none."""
    found: dict[str, str | list[str]] = {}
    words, problems, parts = [], [], list(_PART.finditer(text))
    for match in parts:
        name, value = match[1], match[2] if match[2] is not None else match[3]
        if name is None:
            words.append(value)
            continue
        problem = _condition(found, name, value, now=now, zone=zone)
        if problem:
            problems.append(problem)
    if words:
        found["q"] = " ".join(words)
    chips = tuple(
        Chip(match[0], address(" ".join(other[0] for other in parts if other is not match)))
        for match in parts
        if match[1] is not None
    )
    return JobSearch(text, found, chips, tuple(problems))


def _condition(found: dict[str, str | list[str]], name: str, value: str, *, now: datetime, zone: tzinfo) -> str:
    """Add one condition; return what is wrong with it."""
    if name in RANGES:
        number = value.lstrip("<>=")
        if value[:1] not in "<>" or not re.fullmatch(r"\d+(\.\d+)?", number):
            return f"{name}: takes a bound such as {name}:>0.1 or {name}:<5"
        found[f"{RANGES[name]}_{'min' if value[0] == '>' else 'max'}"] = number
    elif name in TIMES:
        moment = _moment(value, now, zone)
        if moment is None:
            return f"{name}: takes an age such as 7d or 3h, or a date such as 2026-05-01"
        found[TIMES[name]] = moment
    elif name not in NAMES:
        return f"{name}: is not known; these are: {', '.join(sorted((*NAMES, *RANGES, *TIMES)))}"
    elif (parameter := NAMES[name]) in SEVERAL:
        earlier = found.setdefault(parameter, [])
        assert isinstance(earlier, list)
        earlier.append(value)
    else:
        found[parameter] = value
    return ""


def _moment(value: str, now: datetime, zone: tzinfo) -> str | None:
    if short := _AGE.fullmatch(value):
        return (now - timedelta(**{_UNITS[short[2]]: int(short[1])})).isoformat()
    try:
        given = datetime.fromisoformat(value)
        return (given if given.tzinfo else given.replace(tzinfo=zone)).isoformat()
    except ValueError:
        return None


def address(text: str, **more: str) -> str:
    """Return the address of the list with a search box."""
    query = query_of({name: value for name, value in {"s": text, **more}.items() if value})
    return f"/jobs?{query}" if query else "/jobs"
