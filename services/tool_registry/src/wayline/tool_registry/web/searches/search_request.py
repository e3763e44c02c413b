"""What is searched for: the words, where, from when; and what is tried when nothing was found."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Literal
from urllib.parse import urlsplit

from wayline.tool_registry.web.searches.source_categories import SITES, SourceCategory

Kind = Literal["web", "image", "video"]
Recency = Literal["day", "week", "month", "year"]

QUERY_CHARS_MAX = 400
QUERY_WORDS_MAX = 50
"""What search providers take at most."""
DATE_RANGE = r"^(day|week|month|year|\d{4}-\d\d-\d\d\.\.\d{4}-\d\d-\d\d)$"

_DAYS: dict[Recency, int] = {"day": 1, "week": 7, "month": 31, "year": 366}
_SITE = re.compile(r"(?<!\S)-?\(?site:\S+(?:\s+OR\s+site:\S+)*\)?", re.I)


@dataclass(frozen=True, slots=True)
class DateRange:
    """From one day to another, and by its name where it has one."""

    first: date
    last: date
    recency: Recency | None = None

    def covered_by(self, today: date) -> Recency | None:
        """Return the shortest named range, which ends today, that holds this one; None: it began too long ago."""
        age = (today - self.first).days
        return self.recency or next((name for name, days in _DAYS.items() if age <= days), None)

    def may_hold(self, day: date | None) -> bool:
        """Return whether something of this date may be in the range in some time zone; what has none may."""
        return day is None or ((day - self.first).days >= -1 and (day - self.last).days <= 1)

    def __str__(self) -> str:
        return self.recency or f"{self.first}..{self.last}"


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """One search."""

    query: str
    kind: Kind = "web"
    category: SourceCategory | None = None
    target_info: tuple[str, ...] = ()
    dates: DateRange | None = None

    @property
    def sites(self) -> tuple[str, ...]:
        """Return the sites that the search is limited to; none: everywhere."""
        return SITES[self.category] if self.category else ()

    @property
    def words(self) -> str:
        """Return the words to search for, as many as providers take."""
        missing = [one for one in self.target_info if one.casefold() not in self.query.casefold()]
        return _cut(" ".join([self.query, *missing]))

    @property
    def words_with_sites(self) -> str:
        """Return the words, with the sites in the form that search engines share."""
        if not self.sites:
            return self.words
        sites = " OR ".join(f"site:{site.removeprefix('*.')}" for site in self.sites)
        return f"{_cut(self.words, less=len(sites) + 3, fewer=2 * len(self.sites))} ({sites})"


def read_date_range(text: str, *, today: date) -> DateRange:
    """Read `day`, `week`, `month`, `year` or `2026-01-01..2026-03-31`. Raises ValueError, saying so."""
    for name, days in _DAYS.items():
        if text == name:
            return DateRange(today - timedelta(days=days), today, name)
    try:
        first, last = (date.fromisoformat(one) for one in text.split(".."))
    except ValueError:
        raise ValueError(
            f"{text!r} is no range of dates: give day, week, month, year or 2026-01-01..2026-03-31"
        ) from None
    if first > last:
        raise ValueError(f"{text!r} ends before it begins")
    return DateRange(first, last)


def reformulated(request: SearchRequest) -> SearchRequest | None:
    """Return a wider search for the same; None: there is no wider one.

    It is without quotes, sites and further wishes; one that has none of these is without its range of dates.
    """
    plain = " ".join(_SITE.sub(" ", re.sub('["\u201c\u201d\u201e\u00ab\u00bb]', " ", request.query)).split())
    wider = replace(request, query=plain or request.query, category=None, target_info=())
    if wider == request:
        wider = replace(request, dates=None)
    return None if wider == request else wider


@dataclass(frozen=True, slots=True)
class SearchHit:
    """One thing that was found."""

    title: str
    url: str
    snippet: str = ""
    published: date | None = None
    image_url: str | None = None
    duration: str | None = None


def usable(hits: Iterable[SearchHit], dates: DateRange | None, *, limit: int) -> list[SearchHit]:
    """Return the first hits that are web addresses, each once, and not known to be of another time."""
    found: dict[str, SearchHit] = {}
    for hit in hits:
        if is_web_address(hit.url) and (dates is None or dates.may_hold(hit.published)):
            image_url = hit.image_url if hit.image_url and is_web_address(hit.image_url) else None
            found.setdefault(hit.url.rstrip("/"), replace(hit, image_url=image_url))
    return list(found.values())[:limit]


def is_web_address(text: str) -> bool:
    """Return whether a text that a search provider gives as an address is one of the web."""
    try:
        parts = urlsplit(text)
        return text.isprintable() and parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return False


def _cut(words: str, *, less: int = 0, fewer: int = 0) -> str:
    text = " ".join(words.split()[: QUERY_WORDS_MAX - fewer])
    room = QUERY_CHARS_MAX - less
    return text if len(text) <= room else text[:room].rpartition(" ")[0] or text[:room]
