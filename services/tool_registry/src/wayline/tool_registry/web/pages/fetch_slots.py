"""How many pages are fetched at once, for one tenant and of one host, and how soon after each other of one host."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

HOSTS_MAX = 10_000
"""Whose last request is remembered."""

Turn = asyncio.Future[None]


@dataclass
class _Holders:
    held: Counter[str] = field(default_factory=Counter[str])
    """Slots by who holds them."""
    waiting: deque[tuple[str, Turn]] = field(default_factory=deque[tuple[str, Turn]])


class KeyedSlots:
    """So many slots for each key, and fewer for one holder, so that no holder keeps all others waiting."""

    def __init__(self, slots_max: int, *, per_holder: int) -> None:
        self._slots_max = slots_max
        self._per_holder = per_holder
        self._keys: dict[str, _Holders] = {}

    @asynccontextmanager
    async def slot(self, key: str, holder: str) -> AsyncIterator[None]:
        """Wait for a slot, and hold it."""
        one = self._keys.setdefault(key, _Holders())
        if self._is_free(one, holder):
            one.held[holder] += 1
        else:
            await self._wait(key, one, holder)
        try:
            yield
        finally:
            self._give_back(key, one, holder)

    async def _wait(self, key: str, one: _Holders, holder: str) -> None:
        turn: Turn = asyncio.get_running_loop().create_future()
        one.waiting.append((holder, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                one.waiting.remove((holder, turn))
                self._forget(key, one)
            else:
                self._give_back(key, one, holder)
            raise

    def _give_back(self, key: str, one: _Holders, holder: str) -> None:
        one.held[holder] -= 1
        if not one.held[holder]:
            del one.held[holder]
        for following in list(one.waiting):
            name, turn = following
            # One that was cancelled leaves by itself, once its task runs.
            if not turn.cancelled() and self._is_free(one, name):
                one.waiting.remove(following)
                one.held[name] += 1
                turn.set_result(None)
        self._forget(key, one)

    def _is_free(self, one: _Holders, holder: str) -> bool:
        return one.held.total() < self._slots_max and one.held[holder] < self._per_holder

    def _forget(self, key: str, one: _Holders) -> None:
        if not one.held and not one.waiting and self._keys.get(key) is one:
            del self._keys[key]


class FetchSlots:
    """The fetches of pages of all tenants in this process."""

    def __init__(
        self,
        *,
        per_tenant: int,
        per_host: int,
        host_delay_s: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._tenants = KeyedSlots(per_tenant, per_holder=per_tenant)
        # Half of a host's, so that a slow page of one tenant leaves the host to others.
        self._hosts = KeyedSlots(per_host, per_holder=max(1, per_host // 2))
        self._host_delay_s = host_delay_s
        self._clock = clock
        self._sleep = sleep
        self._next: OrderedDict[str, float] = OrderedDict()
        """When a host may be asked again, the one that was asked last at the end."""

    @asynccontextmanager
    async def slot(self, tenant: str, host: str) -> AsyncIterator[None]:
        """Wait until a tenant may ask a host, and hold its places."""
        async with self._tenants.slot(tenant, tenant), self._hosts.slot(host, tenant):
            await self.pause(host)
            yield

    async def pause(self, host: str) -> None:
        """Wait until a host was left alone for long enough, and ask it next."""
        now = self._clock()
        begins = max(now, self._next.pop(host, now))
        self._next[host] = begins + self._host_delay_s
        if len(self._next) > HOSTS_MAX:
            self._next.popitem(last=False)
        if begins > now:
            await self._sleep(begins - now)
