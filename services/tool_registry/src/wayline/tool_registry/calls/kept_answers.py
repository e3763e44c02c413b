"""What this process remembers of calls for a while: answers that nobody has taken yet, and keys that were cancelled."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from wayline.contracts.tools import ToolReply

KEPT_S = 30.0
"""How long an answer without a waiting caller is kept for a caller that asks again: a read has no ledger row."""
KEPT_MAX_BYTES = 64 * 1024 * 1024
KEPT_PER_TENANT_MAX_BYTES = 16 * 1024 * 1024
ANSWER_BYTES = 4 * 1024
"""About what an answer takes beside its content."""
CANCELLED_S = 60.0
"""How long a call that was cancelled is not begun."""
CANCELLED_MAX = 10_000
CANCELLED_PER_TENANT_MAX = 1_000


@dataclass(frozen=True, eq=False)
class _Answer:
    tenant: str
    size: int
    forget: Callable[[], None] = field(repr=False)


class KeptAnswers:
    """Answers of reads whose callers have left: each for a while, and the oldest go where they take too much."""

    def __init__(self) -> None:
        self._kept: dict[_Answer, asyncio.TimerHandle] = {}
        """The oldest first."""
        self._bytes: Counter[str] = Counter()

    def keep(self, tenant: str, reply: ToolReply, *, forget: Callable[[], None]) -> None:
        """Keep an answer; `forget` is called once it is kept no longer."""
        one = _Answer(tenant, ANSWER_BYTES + len(reply.__pydantic_serializer__.to_json(reply)), forget)
        self._kept[one] = asyncio.get_running_loop().call_later(KEPT_S, self._drop, one)
        self._bytes[tenant] += one.size
        while self._bytes[tenant] > KEPT_PER_TENANT_MAX_BYTES:
            self._drop(next(other for other in self._kept if other.tenant == tenant))
        while self._bytes.total() > KEPT_MAX_BYTES:
            self._drop(next(iter(self._kept)))

    def _drop(self, one: _Answer) -> None:
        if (timer := self._kept.pop(one, None)) is None:
            return
        timer.cancel()
        self._bytes[one.tenant] -= one.size
        if not self._bytes[one.tenant]:
            del self._bytes[one.tenant]
        one.forget()


class CancelledKeys:
    """Keys that are not begun for a while: after a stall a cancel may be read before its call.

    Where a tenant cancels too many, its own oldest are forgotten, and no other tenant's.
    """

    def __init__(self) -> None:
        self._until: dict[str, dict[str, float]] = {}
        """Of each tenant's keys, the oldest first."""

    def __contains__(self, key: str) -> bool:
        return self._until.get(_tenant(key), {}).get(key, 0.0) > time.monotonic()

    def add(self, key: str) -> None:
        """Remember a key."""
        now = time.monotonic()
        keys = self._until.setdefault(_tenant(key), {})
        keys.pop(key, None)
        keys[key] = now + CANCELLED_S
        if len(keys) > CANCELLED_PER_TENANT_MAX:
            del keys[next(iter(keys))]
        if sum(map(len, self._until.values())) > CANCELLED_MAX:
            self._forget_some(now)

    def _forget_some(self, now: float) -> None:
        """Forget what is over, else the oldest key of the tenant with the most."""
        before = sum(map(len, self._until.values()))
        alive = {
            tenant: {key: until for key, until in keys.items() if until > now} for tenant, keys in self._until.items()
        }
        self._until = {tenant: keys for tenant, keys in alive.items() if keys}
        if sum(map(len, self._until.values())) == before:
            most = max(self._until.values(), key=len)
            del most[next(iter(most))]


def _tenant(key: str) -> str:
    return key.partition("/")[0]
