"""Replies that are larger than a message: stored for a minute, and no more of one tenant than its share."""

from __future__ import annotations

import secrets
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from wayline.chassis.claim_check.claims import Claims
from wayline.chassis.topology import REPLIES_KEPT_S
from wayline.contracts.errors import Full, Retry

WORD = "replies"
"""Of `Wayline-Replies` on a request whose sender reads this store, and of `Wayline-Claims` on such a reply."""
REMEMBERED_MAX = 10_000
"""Tenants."""
MOVING_MAX_BYTES = 32 * 1024 * 1024
"""Of replies that a process moves at once: each is some five times in memory until the store has it."""
MOVING_SHARE = 0.75
"""Of them that may be one tenant's."""
FILL_FRESH_S = 1.0
"""How long it counts how full the store was."""
FILL_AGAIN_S = 60.0
"""After this it is asked again, where it could not be told."""

ReadFill = Callable[[], Awaitable[float | None]]
"""Returns how full the store is, from 0 to 1; None: it cannot be told."""


class TooManyLargeReplies(Full):
    """The large replies of the last minute take as much as a tenant may have in their store."""

    def __init__(self, *, tenant: str, most: int) -> None:
        Retry.__init__(
            self,
            f"the large answers to tenant {tenant!r} of the last {REPLIES_KEPT_S:g} s take {most} bytes, its share: "
            "ask again later or for less, or raise WAYLINE_REPLIES_PER_TENANT_MAX_BYTES",
            after_s=REPLIES_KEPT_S / 4,
        )


class TooManyAtOnce(Full):
    """So many bytes of replies are being moved to the store that another one is not begun."""

    def __init__(self) -> None:
        Retry.__init__(self, "too many large answers are on their way: ask again later", after_s=1.0)


@dataclass
class _Window:
    """The bytes of a tenant, and when each is gone."""

    total: int = 0
    parts: deque[tuple[float, int]] = field(default_factory=deque)

    def forget(self, now: float) -> None:
        while self.parts and self.parts[0][0] <= now:
            self.total -= self.parts.popleft()[1]

    def add(self, now: float, size: int) -> tuple[float, int]:
        part = (now + REPLIES_KEPT_S, size)
        self.total += size
        self.parts.append(part)
        return part

    def drop(self, part: tuple[float, int]) -> None:
        if part in self.parts:
            self.parts.remove(part)
            self.total -= part[1]


class LargeReplies:
    """Moves the large fields of replies to a store from which they are gone within a minute.

    A tenant's share in each process shrinks as the store fills: however many processes answer it, room is left.
    """

    def __init__(self, claims: Claims, *, per_tenant_max_bytes: int, read_fill: ReadFill) -> None:
        self._claims = claims
        self._most = per_tenant_max_bytes
        self._windows: dict[str, _Window] = {}
        self._fill = _Fill(read_fill)
        self._moving: Counter[str] = Counter()

    async def check_in(self, body: bytes, tenant: str) -> bytes:
        """Return a reply's body without its large fields.

        Raises TooManyLargeReplies, TooManyAtOnce, Full or Unavailable.
        """
        with self._counted(tenant, len(body)):
            most = int(self._most * (1 - await self._fill.now()))
            window = self._window(tenant, time.monotonic())
            if window.total and window.total + len(body) > most:
                raise TooManyLargeReplies(tenant=tenant, most=most)
            part = window.add(time.monotonic(), len(body))
            try:
                # A place of its own: what an earlier reply stored may be gone before this one is read.
                body, _ = await self._claims.check_in(body, f"{tenant}/{WORD}/{secrets.token_hex(8)}")
            except BaseException:
                window.drop(part)
                raise
            return body

    async def check_out(self, body: bytes, tenant: str) -> bytes:
        """Return a reply's body with its fields. Raises InvalidMessage, PayloadMissing or Unavailable."""
        return await self._claims.check_out(body, within=f"{tenant}/{WORD}/")

    def _window(self, tenant: str, now: float) -> _Window:
        if len(self._windows) > REMEMBERED_MAX:
            self._windows = {name: one for name, one in self._windows.items() if one.parts and one.parts[-1][0] > now}
        window = self._windows.setdefault(tenant, _Window())
        window.forget(now)
        return window

    @contextmanager
    def _counted(self, tenant: str, size: int) -> Iterator[None]:
        """Count the bytes of a reply while it is moved. Raises TooManyAtOnce."""
        # The first one always may, so that a large one is never shut out.
        mine, all_of_them = self._moving[tenant], self._moving.total()
        if (mine and mine + size > MOVING_MAX_BYTES * MOVING_SHARE) or (
            all_of_them and all_of_them + size > MOVING_MAX_BYTES
        ):
            raise TooManyAtOnce
        self._moving[tenant] += size
        try:
            yield
        finally:
            self._moving[tenant] -= size
            if not self._moving[tenant]:
                del self._moving[tenant]


class _Fill:
    """How full the store is, asked for no more than once a second."""

    def __init__(self, read: ReadFill) -> None:
        self._read = read
        self._last = 0.0
        self._until = 0.0

    async def now(self) -> float:
        """Return how full it is, from 0 to 1; 0 where it cannot be told: then each process has only its own share."""
        if time.monotonic() >= self._until:
            self._until = time.monotonic() + FILL_FRESH_S
            fill = await self._read()
            if fill is None:
                self._until = time.monotonic() + FILL_AGAIN_S
            self._last = min(1.0, fill or 0.0)
        return self._last
