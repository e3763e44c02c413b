"""Replies that are larger than a message: in memory for a minute, and no more of one tenant than its share."""

from __future__ import annotations

import secrets
import time
from collections import deque
from dataclasses import dataclass, field

from wayline.chassis.claim_check.claims import Claims
from wayline.chassis.topology import REPLIES_KEPT_S
from wayline.contracts.errors import Full, Retry

WORD = "replies"
"""Of `Wayline-Replies` on a request whose sender reads this store, and of `Wayline-Claims` on such a reply."""
REMEMBERED_MAX = 10_000
"""Tenants."""


class TooManyLargeReplies(Full):
    """The large replies of the last minute take as much as a tenant may have in memory."""

    def __init__(self, *, tenant: str, most: int) -> None:
        Retry.__init__(
            self,
            f"the large answers to tenant {tenant!r} of the last {REPLIES_KEPT_S:g} s take {most} bytes, its share: "
            "ask again later or for less, or raise WAYLINE_REPLIES_PER_TENANT_MAX_BYTES",
            after_s=REPLIES_KEPT_S / 4,
        )


@dataclass
class _Window:
    """The bytes of a tenant, and when each is gone."""

    total: int = 0
    parts: deque[tuple[float, int]] = field(default_factory=deque)

    def forget(self, now: float) -> None:
        while self.parts and self.parts[0][0] <= now:
            self.total -= self.parts.popleft()[1]

    def add(self, now: float, size: int) -> None:
        self.total += size
        self.parts.append((now + REPLIES_KEPT_S, size))


class LargeReplies:
    """Moves the large fields of replies to a store in memory, from which they are gone within a minute."""

    def __init__(self, claims: Claims, *, per_tenant_max_bytes: int) -> None:
        self._claims = claims
        self._most = per_tenant_max_bytes
        self._windows: dict[str, _Window] = {}

    async def check_in(self, body: bytes, tenant: str) -> bytes:
        """Return a reply's body without its large fields. Raises TooManyLargeReplies, Full or Unavailable."""
        now = time.monotonic()
        window = self._windows.setdefault(tenant, _Window())
        window.forget(now)
        if window.total and window.total + len(body) > self._most:
            raise TooManyLargeReplies(tenant=tenant, most=self._most)
        window.add(now, len(body))
        if len(self._windows) > REMEMBERED_MAX:
            self._windows = {name: one for name, one in self._windows.items() if one.parts and one.parts[-1][0] > now}
        # A place of its own: what an earlier reply stored may be gone before this one is read.
        body, _ = await self._claims.check_in(body, f"{tenant}/{WORD}/{secrets.token_hex(8)}")
        return body

    async def check_out(self, body: bytes, tenant: str) -> bytes:
        """Return a reply's body with its fields. Raises InvalidMessage, PayloadMissing or Unavailable."""
        return await self._claims.check_out(body, within=f"{tenant}/{WORD}/")
