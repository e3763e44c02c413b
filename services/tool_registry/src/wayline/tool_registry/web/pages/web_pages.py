"""Pages of the web as text: fetched behind the guard, read in a process of their own, kept for a while."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from wayline.documents.file_kinds import KINDS, type_by_content
from wayline.guarded_http import Answer, GuardedClient, GuardedRequestError, Limits, TimedOut
from wayline.tool_registry.web.expiring_cache import ExpiringCache
from wayline.tool_registry.web.fetching import CannotFetch, cannot_fetch
from wayline.tool_registry.web.pages.browser import Browser, CannotRender
from wayline.tool_registry.web.pages.document_reader import CannotRead, DocumentReader
from wayline.tool_registry.web.pages.fetch_slots import FetchSlots
from wayline.tool_registry.web.pages.retries import get_with_retries
from wayline.tool_registry.web.pages.robots_files import RobotsFiles

BACKOFF_FIRST_S = 0.5
UNBOUNDED = 1_000_000
HEADERS = {
    "accept": "text/html,application/xhtml+xml,text/plain,application/pdf,"
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document;q=0.9,*/*;q=0.1"
}
SHOWN = {"content-type": "text/html; charset=utf-8"}
"""What a browser has made of a page."""
TEXT_MIN_CHARS = 200
"""A page with less text is one that its scripts make."""
READ = "text, HTML, PDF, Office files, books and mail"
_TEXTS = frozenset(
    {"application/xml", "application/yaml", "application/rss+xml", "application/atom+xml", "application/x-ndjson"}
)


@dataclass(frozen=True, slots=True)
class WebPage:
    """A page as text."""

    url: str
    """Where it is, after redirects."""
    title: str
    text: str


class WebPages:
    """Fetches pages for all tenants; what one fetched is not shown to another from the cache."""

    def __init__(
        self,
        client: GuardedClient,
        reader: DocumentReader,
        *,
        browser: Browser | None = None,
        slots: FetchSlots | None = None,
        robots: bool = True,
        timeout_s: float = 20.0,
        page_max_bytes: int = 10 * 1024 * 1024,
        cache_s: float = 900.0,
        cache_max_bytes: int = 32 * 1024 * 1024,
        backoff_first_s: float = BACKOFF_FIRST_S,
    ) -> None:
        self._client = client
        self._reader = reader
        self._browser = browser
        self._slots = slots or FetchSlots(per_tenant=UNBOUNDED, per_host=UNBOUNDED, host_delay_s=0)
        self._robots = RobotsFiles(client, backoff_first_s=backoff_first_s) if robots else None
        self._timeout_s = timeout_s
        self._limits = Limits(body_max_bytes=page_max_bytes, total_s=timeout_s)
        self._backoff_first_s = backoff_first_s
        self._pages: ExpiringCache[WebPage] = ExpiringCache(keep_s=cache_s, max_bytes=cache_max_bytes)

    async def fetch(self, tenant: str, url: str) -> WebPage:
        """Return a page as text. Raises CannotFetch."""
        if (kept := self._pages.get((tenant, url))) is not None:
            return kept
        deadline = self._deadline()
        page = await self._shown(tenant, await self._answer(tenant, url, deadline), deadline)
        self._pages.put((tenant, url), page, size_bytes=len(page.text.encode()) + len(url))
        return page

    async def _answer(self, tenant: str, url: str, deadline: float) -> Answer:
        host = _host(url)

        async def check(hop: str) -> None:
            if (other := _host(hop)) != host:
                await self._slots.pause(other)
            if self._robots is not None:
                await self._robots.check(hop)

        try:
            async with asyncio.timeout_at(deadline):
                return await get_with_retries(
                    self._client,
                    url,
                    headers=HEADERS,
                    limits=self._limits,
                    check=check,
                    backoff_first_s=self._backoff_first_s,
                    slot=partial(self._slots.slot, tenant, host),
                )
        except TimeoutError:
            raise CannotFetch(TimedOut.code, f"the page was not fetched within {self._timeout_s:g} s") from None
        except GuardedRequestError as error:
            raise cannot_fetch(error) from error

    def _deadline(self) -> float:
        return asyncio.get_running_loop().time() + self._timeout_s

    async def _shown(self, tenant: str, answer: Answer, deadline: float) -> WebPage:
        """Return a page as text, with what its scripts put there where it has hardly any text without them."""
        page, why = None, ("", "")
        try:
            page = await self._readable(tenant, answer, deadline)
        except CannotFetch as error:
            # Not the error: kept here it would keep itself, and with its frames the page as it came.
            why = error.code, str(error)
        if self._browser is not None and _kind(answer) == "html" and is_made_by_scripts(answer.content, page):
            try:
                document = await self._browser.render(tenant, answer.url)
                shown = replace(answer, content=document, headers=SHOWN)
                return await self._readable(tenant, shown, self._deadline())
            except (CannotRender, CannotFetch) as error:
                why = "unreadable", f"without its scripts it has no text, and {error}"
        if page is None:
            raise CannotFetch(*why)
        return page

    async def _readable(self, tenant: str, answer: Answer, deadline: float) -> WebPage:
        kind = _kind(answer)
        if kind is None:
            what = answer.media_type or "a file of no stated type"
            raise CannotFetch("unsupported", f"this is {what}, and only {READ} are read")
        try:
            charset = _charset(answer.headers)
            read = await self._reader.read(
                tenant, answer.content, kind=kind, charset=charset, url=answer.url, deadline=deadline
            )
        except CannotRead as error:
            raise CannotFetch(error.code, str(error)) from error
        return WebPage(answer.url, read.title, read.text)


def is_made_by_scripts(content: bytes, page: WebPage | None) -> bool:
    """Return whether the text of a page is missing and its scripts may bring it."""
    return (page is None or len(page.text) < TEXT_MIN_CHARS) and b"<script" in content.lower()


def describe(found: WebPage | CannotFetch, url: str, text: str) -> dict[str, Any]:
    """Return one URL's part of the tool's result."""
    if isinstance(found, CannotFetch):
        return {"url": url, "error": {"code": found.code, "message": str(found)}}
    moved = {"fetched_from": found.url} if found.url != url else {}
    return {"url": url, **moved, "title": found.title, "content": text}


def _host(url: str) -> str:
    """Return the host of a URL with its port; empty for what is no URL, which is refused when it is fetched."""
    try:
        return urlsplit(url).netloc.rpartition("@")[2].lower()
    except ValueError:
        return ""


def _kind(answer: Answer) -> str | None:
    media_type = type_by_content(answer.content) or answer.media_type
    if media_type in KINDS:
        return KINDS[media_type]
    if media_type.startswith("text/") or media_type in _TEXTS:
        return "text"
    head = answer.content[:512].lstrip().lower()
    return "html" if not media_type and head.startswith((b"<!doctype html", b"<html")) else None


def _charset(headers: Mapping[str, str]) -> str:
    _, found, value = headers.get("content-type", "").lower().partition("charset=")
    return value.partition(";")[0].strip(" \"'")[:40] if found else ""
