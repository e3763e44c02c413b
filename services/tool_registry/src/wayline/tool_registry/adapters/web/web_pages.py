"""Pages of the web as text: fetched behind the guard, read in a process of their own, kept for a while."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from wayline.guarded_http import (
    Answer,
    BadStatus,
    Blocked,
    GuardedClient,
    GuardedRequestError,
    InvalidUrl,
    Limits,
    TimedOut,
)
from wayline.tool_registry.adapters.web.document_reader import CannotRead, DocumentReader
from wayline.tool_registry.web.expiring_cache import ExpiringCache
from wayline.tool_registry.web.fetching import failure, wait_before_retry
from wayline.tool_registry.web.robots import NOTHING, Robots, read_robots

ATTEMPTS_MAX = 3
BACKOFF_FIRST_S = 0.5
ROBOTS_LIMITS = Limits(body_max_bytes=512 * 1024, total_s=8.0)
ROBOTS_KEEP_S = 3_600.0
ROBOTS_CACHE_BYTES = 1024 * 1024
PRODUCT = "Wayline"
"""What a robots.txt calls us."""
HEADERS = {
    "accept": "text/html,application/xhtml+xml,text/plain,application/pdf,"
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document;q=0.9,*/*;q=0.1"
}
_KINDS = {
    "text/html": "html",
    "application/xhtml+xml": "html",
    "application/pdf": "pdf",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/json": "text",
    "application/ld+json": "text",
    "application/xml": "text",
    "application/yaml": "text",
    "application/rss+xml": "text",
    "application/atom+xml": "text",
}


@dataclass(frozen=True, slots=True)
class WebPage:
    """A page as text."""

    url: str
    """Where it is, after redirects."""
    title: str
    text: str


class CannotFetch(Exception):
    """A page that is not to be had; what to tell the model."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class WebPages:
    """Fetches pages for all tenants; what one fetched is not shown to another from the cache."""

    def __init__(
        self,
        client: GuardedClient,
        reader: DocumentReader,
        *,
        robots: bool = True,
        timeout_s: float = 20.0,
        page_max_bytes: int = 10 * 1024 * 1024,
        cache_s: float = 900.0,
        cache_max_bytes: int = 32 * 1024 * 1024,
        backoff_first_s: float = BACKOFF_FIRST_S,
    ) -> None:
        self._client = client
        self._reader = reader
        self._honours_robots = robots
        self._timeout_s = timeout_s
        self._limits = Limits(body_max_bytes=page_max_bytes, total_s=timeout_s)
        self._backoff_first_s = backoff_first_s
        self._pages: ExpiringCache[WebPage] = ExpiringCache(keep_s=cache_s, max_bytes=cache_max_bytes)
        self._robots: ExpiringCache[Robots] = ExpiringCache(keep_s=ROBOTS_KEEP_S, max_bytes=ROBOTS_CACHE_BYTES)

    async def fetch(self, tenant: str, url: str) -> WebPage:
        """Return a page as text. Raises CannotFetch."""
        if (kept := self._pages.get((tenant, url))) is not None:
            return kept
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._check_robots(url)
                answer = await self._answer(url)
                if answer.url != url:
                    await self._check_robots(answer.url)
        except TimeoutError:
            raise CannotFetch(TimedOut.code, f"the page was not fetched within {self._timeout_s:g} s") from None
        except GuardedRequestError as error:
            reason = failure(error)
            raise CannotFetch(reason["code"], reason["message"]) from error
        page = await self._readable(answer)
        self._pages.put((tenant, url), page, size_bytes=len(page.text.encode()) + len(url))
        return page

    async def _answer(self, url: str) -> Answer:
        for attempt in range(1, ATTEMPTS_MAX + 1):
            try:
                return await self._client.get(url, headers=HEADERS, limits=self._limits)
            except GuardedRequestError as error:
                wait_s = wait_before_retry(error, attempt, first_s=self._backoff_first_s)
                if wait_s is None or attempt == ATTEMPTS_MAX:
                    raise
                await asyncio.sleep(wait_s * random.uniform(0.75, 1.25))
        raise AssertionError("the last attempt returns or raises")

    async def _check_robots(self, url: str) -> None:
        if not self._honours_robots:
            return
        origin = _origin(url)
        robots = self._robots.get(origin)
        if robots is None:
            robots = await self._read_robots(origin)
            self._robots.put(origin, robots, size_bytes=200 + sum(len(rule.pattern) + 50 for rule in robots.rules))
        parts = urlsplit(url)
        if not robots.allows(f"{parts.path}?{parts.query}" if parts.query else parts.path):
            raise CannotFetch("robots", f"the robots.txt of {parts.hostname} asks programs not to read this page")

    async def _read_robots(self, origin: str) -> Robots:
        try:
            answer = await self._client.get(f"{origin}/robots.txt", limits=ROBOTS_LIMITS)
        except BadStatus as error:
            return NOTHING if error.status >= 500 or error.status == 429 else Robots()
        except (Blocked, InvalidUrl):
            raise
        except GuardedRequestError:
            # The page itself will say what is wrong, if it is not this file alone.
            return Robots()
        return read_robots(answer.content.decode("utf-8", "replace"), PRODUCT)

    async def _readable(self, answer: Answer) -> WebPage:
        kind = _kind(answer)
        if kind is None:
            what = answer.media_type or "a file of no stated type"
            raise CannotFetch("unsupported", f"this is {what}, and only text, HTML, PDF and DOCX are read")
        try:
            read = await self._reader.read(answer.content, kind=kind, charset=_charset(answer.headers), url=answer.url)
        except CannotRead as error:
            raise CannotFetch("unreadable", str(error)) from error
        return WebPage(answer.url, read.title, read.text)


def describe(found: WebPage | CannotFetch, url: str, text: str) -> dict[str, Any]:
    """Return one URL's part of the tool's result."""
    if isinstance(found, CannotFetch):
        return {"url": url, "error": {"code": found.code, "message": str(found)}}
    moved = {"fetched_from": found.url} if found.url != url else {}
    return {"url": url, **moved, "title": found.title, "content": text}


def _kind(answer: Answer) -> str | None:
    if answer.content.startswith(b"%PDF-"):
        return "pdf"
    media_type = answer.media_type
    if media_type in _KINDS:
        return _KINDS[media_type]
    if media_type.startswith("text/"):
        return "text"
    head = answer.content[:512].lstrip().lower()
    return "html" if not media_type and head.startswith((b"<!doctype html", b"<html")) else None


def _charset(headers: Mapping[str, str]) -> str:
    _, found, value = headers.get("content-type", "").lower().partition("charset=")
    return value.partition(";")[0].strip(" \"'")[:40] if found else ""


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme.lower()}://{parts.netloc.lower()}"
