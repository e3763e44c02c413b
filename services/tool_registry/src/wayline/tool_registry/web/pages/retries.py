"""Fetch a URL, again after a failure that may pass."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext

from wayline.guarded_http import Answer, Check, GuardedClient, GuardedRequestError, Limits
from wayline.tool_registry.web.fetching import wait_before_retry

ATTEMPTS_MAX = 3


async def get_with_retries(
    client: GuardedClient,
    url: str,
    *,
    limits: Limits,
    backoff_first_s: float,
    headers: Mapping[str, str] | None = None,
    check: Check | None = None,
    slot: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
) -> Answer:
    """Fetch a URL in a few attempts, each in a slot. Raises GuardedRequestError, and what `check` raises."""
    for attempt in range(1, ATTEMPTS_MAX + 1):
        try:
            async with slot():
                return await client.get(url, headers=headers, limits=limits, check=check)
        except GuardedRequestError as error:
            wait_s = wait_before_retry(error, attempt, first_s=backoff_first_s)
            if wait_s is None or attempt == ATTEMPTS_MAX:
                raise
            await asyncio.sleep(wait_s * random.uniform(0.75, 1.25))
    raise AssertionError("the last attempt returns or raises")
