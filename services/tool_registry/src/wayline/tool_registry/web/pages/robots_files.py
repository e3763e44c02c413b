"""The robots.txt files of sites: fetched before the first page, kept for a while for all tenants."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from urllib.parse import urlsplit

from wayline.guarded_http import Blocked, GuardedClient, GuardedRequestError, InvalidUrl, Limits, NotConnected
from wayline.tool_registry.web.expiring_cache import ExpiringCache
from wayline.tool_registry.web.fetching import CannotFetch, cannot_fetch, may_pass
from wayline.tool_registry.web.pages.retries import get_with_retries
from wayline.tool_registry.web.pages.robots import Robots, read_robots, robots_text

LIMITS = Limits(body_max_bytes=512 * 1024, total_s=8.0, cut=True)
"""RFC 9309 asks to read at least 500 KiB of a longer file."""
KEEP_S = 3_600.0
KEEP_FAILURES_S = 60.0
CACHE_MAX_BYTES = 8 * 1024 * 1024
FAILURES_MAX_BYTES = 256 * 1024
PRODUCT = "Wayline"
"""What a robots.txt calls us."""


class RobotsFiles:
    """Checks URLs against the robots.txt of their sites."""

    def __init__(
        self, client: GuardedClient, *, backoff_first_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._client = client
        self._backoff_first_s = backoff_first_s
        self._read: ExpiringCache[Robots] = ExpiringCache(keep_s=KEEP_S, max_bytes=CACHE_MAX_BYTES, clock=clock)
        self._failed: ExpiringCache[str] = ExpiringCache(
            keep_s=KEEP_FAILURES_S, max_bytes=FAILURES_MAX_BYTES, clock=clock
        )
        """Why the file of a site could not be read."""

    async def check(self, url: str) -> None:
        """Refuse a URL that its site asks programs not to read, or where it cannot tell now. Raises CannotFetch."""
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc}".lower()
        robots = self._read.get(origin)
        if robots is None:
            robots = await self._robots(origin, parts.hostname or "")
            self._read.put(origin, robots, size_bytes=200 + sum(len(rule.pattern) + 50 for rule in robots.rules))
        if not robots.allows(f"{parts.path}?{parts.query}" if parts.query else parts.path):
            raise CannotFetch("robots", f"the robots.txt of {parts.hostname} asks programs not to read this page")

    async def _robots(self, origin: str, host: str) -> Robots:
        reason = self._failed.get(origin)
        if reason is not None:
            raise CannotFetch("robots_unavailable", reason)
        url = f"{origin}/robots.txt"
        try:
            answer = await get_with_retries(self._client, url, limits=LIMITS, backoff_first_s=self._backoff_first_s)
        except (Blocked, InvalidUrl, NotConnected) as error:
            # The page itself would fail in the same way.
            raise cannot_fetch(error) from error
        except GuardedRequestError as error:
            if not may_pass(error):
                return Robots()
            # It may forbid the page: until it can be read, the standard lets nothing be fetched.
            reason = f"the robots.txt of {host} cannot be read now ({error}): try again in a minute, or another site"
            self._failed.put(origin, reason, size_bytes=len(origin) + len(reason))
            raise CannotFetch("robots_unavailable", reason) from error
        # A thread: a large file takes a while.
        return await asyncio.to_thread(read_robots, robots_text(answer.content, cut=answer.cut), PRODUCT)
