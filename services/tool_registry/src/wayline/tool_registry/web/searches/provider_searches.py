"""Searches of the web by the configured provider: kept for a while, limited for each tenant, once tried anew."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from wayline.contracts.tool_charges import ToolCharge
from wayline.guarded_http import (
    BadStatus,
    Blocked,
    GuardedClient,
    GuardedRequestError,
    InvalidUrl,
    Limits,
    NotConnected,
)
from wayline.tool_registry.web.expiring_cache import ExpiringCache
from wayline.tool_registry.web.fetching import wait_before_retry
from wayline.tool_registry.web.rate_limit import RateLimit
from wayline.tool_registry.web.searches.search_providers import Provider, UnusableAnswer
from wayline.tool_registry.web.searches.search_request import SearchHit, SearchRequest, reformulated, usable

RESULTS_MAX = 5
ASKED_FOR = 10
"""Of the provider: some fall away, as doubles or by their date."""
ATTEMPTS_MAX = 2
BACKOFF_FIRST_S = 1.0
LIMITS = Limits(body_max_bytes=4 * 1024 * 1024, total_s=12.0)
ERROR_READ_BYTES = 10_000
CACHE_MAX_BYTES = 8 * 1024 * 1024
KEY_SETTING = "WAYLINE_TOOL_REGISTRY_WEB_SEARCH_KEY"
URL_SETTING = "WAYLINE_TOOL_REGISTRY_WEB_SEARCH_URL"
NOT_CHARGED = (BadStatus, Blocked, InvalidUrl, NotConnected)
"""Failures for which no provider charges: after any other one the search may have been made."""


class SearchRefused(Exception):
    """A search that brings nothing however often it is tried; what to tell the model, and what was paid."""

    def __init__(self, message: str, *, cost_usd: Decimal | None = Decimal(0)) -> None:
        super().__init__(message)
        self.cost_usd = cost_usd


class SearchAway(Exception):
    """The provider does not answer; what was paid, None: it may have charged for what it did not answer."""

    def __init__(self, message: str, *, cost_usd: Decimal | None = Decimal(0)) -> None:
        super().__init__(message)
        self.cost_usd = cost_usd


@dataclass(frozen=True, slots=True)
class SearchResults:
    """The hits of a search, and what it cost."""

    hits: tuple[SearchHit, ...]
    searched: SearchRequest
    """What was searched for at last."""
    cost_usd: Decimal = Decimal(0)
    dates_unsure: bool = False
    """Hits without a date may be of another time than the one that was searched for."""


class WebSearch:
    """Searches for all tenants by one provider."""

    def __init__(
        self,
        name: str,
        provider: Provider,
        client: GuardedClient,
        *,
        cost_usd: Decimal = Decimal(0),
        cache_s: float = 900.0,
        per_minute: int = 30,
        backoff_first_s: float = BACKOFF_FIRST_S,
        today: Callable[[], date] = lambda: datetime.now(UTC).date(),
    ) -> None:
        self._name = name
        self._provider = provider
        self._client = client
        self._cost_usd = cost_usd
        self._backoff_first_s = backoff_first_s
        self._today = today
        self._limit = RateLimit(per_minute)
        self._kept: ExpiringCache[SearchResults] = ExpiringCache(keep_s=cache_s, max_bytes=CACHE_MAX_BYTES)

    @property
    def charge(self) -> ToolCharge | None:
        """Return the most that a call charges: that of a search and of the wider one after it."""
        return ToolCharge(usd=2 * self._cost_usd) if self._cost_usd else None

    @property
    def today(self) -> date:
        """Return the day from which ranges of dates are counted."""
        return self._today()

    async def search(self, tenant: str, request: SearchRequest) -> SearchResults:
        """Return what was found, after one wider search where nothing was. Raises SearchRefused or SearchAway."""
        if (kept := self._kept.get((tenant, request))) is not None:
            return replace(kept, cost_usd=Decimal(0))
        searched, paid = request, Decimal(0)
        hits = await self._asked(tenant, request, paid=paid)
        paid += self._cost_usd
        if not hits and (wider := reformulated(request)) is not None:
            searched = wider
            hits = await self._asked(tenant, wider, paid=paid)
            paid += self._cost_usd
        unsure = not self._provider.limits_dates(searched) and any(hit.published is None for hit in hits)
        found = SearchResults(tuple(hits), searched, paid, unsure)
        size = sum(len(repr(hit)) for hit in hits) + len(repr(request))
        self._kept.put((tenant, request), found, size_bytes=size)
        return found

    async def _asked(self, tenant: str, request: SearchRequest, *, paid: Decimal) -> list[SearchHit]:
        if wait_s := self._limit.take(tenant):
            raise SearchRefused(
                f"too many searches in a minute: search again in {wait_s:.0f} s, or go on with what is known",
                cost_usd=paid,
            )
        try:
            answer = await self._answer(request)
            return usable(self._provider.hits(request, answer), request.dates, limit=RESULTS_MAX)
        except GuardedRequestError as error:
            raise self._failed(error, paid) from error
        except (UnusableAnswer, ValueError, RecursionError) as error:
            reason = f"{self._name} answered with what is no search result: is {URL_SETTING} its address?"
            # It has answered, so it may have charged.
            raise SearchRefused(reason, cost_usd=paid + self._cost_usd) from error

    async def _answer(self, request: SearchRequest) -> Any:
        call = self._provider.call(request, count=ASKED_FOR, today=self._today())
        for attempt in range(1, ATTEMPTS_MAX + 1):
            try:
                answer = await self._client.request(
                    call.method, call.url, headers=call.headers, content=call.content, limits=LIMITS
                )
                return json.loads(answer.content)
            except GuardedRequestError as error:
                wait_s = wait_before_retry(error, attempt, first_s=self._backoff_first_s)
                refused = isinstance(error, BadStatus) and error.status == 403
                if wait_s is None or refused or attempt == ATTEMPTS_MAX or self._may_have_charged(error):
                    raise
                await asyncio.sleep(wait_s)
        raise AssertionError("the last attempt returns or raises")

    def _may_have_charged(self, error: GuardedRequestError) -> bool:
        return bool(self._cost_usd) and not isinstance(error, NOT_CHARGED)

    def _failed(self, error: GuardedRequestError, paid: Decimal) -> SearchRefused | SearchAway:
        status = error.status if isinstance(error, BadStatus) else None
        # Brave answers a wrong key as if the search were wrong.
        wrong_key = isinstance(error, BadStatus) and b"TOKEN_INVALID" in error.content[:ERROR_READ_BYTES]
        if status in (401, 403) or wrong_key:
            what = "its JSON format is not switched on" if self._name == "searxng" else f"{KEY_SETTING} is wrong"
            return SearchRefused(f"{self._name} refuses searches: {what}", cost_usd=paid)
        if status is not None and status < 500 and status != 429:
            reason = f"{self._name} refuses this search with status {status}: put it in other words"
            return SearchRefused(reason, cost_usd=paid)
        unsure = self._may_have_charged(error)
        return SearchAway(f"{self._name} does not answer: {error}", cost_usd=None if unsure else paid)
