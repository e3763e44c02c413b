"""How a worker's slots are shared between tenants: none takes all of them, and none holds one while it waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

SHARED_FROM = 4
"""Slots from which on they are shared out; with fewer, a share would be half of them or all."""
WAITING_MAX_BYTES = 64 * 1024 * 1024
"""The most bytes of bodies of all messages that wait without a slot."""


@dataclass
class _Tenant:
    turns: asyncio.Semaphore
    users: int = 0
    waiting: int = 0


@dataclass(eq=False)
class HeldMessage:
    """One message in hand: its tenant, its size, and whether it still has its slot."""

    tenant: str
    size_bytes: int
    free_slot: Callable[[], None] = field(repr=False)
    has_slot: bool = True


class TenantSlots:
    """Lets messages be handled `slots` at a time, of one tenant no more than its share.

    A message that waits (for its tenant's turn, or for something that is away) gives its slot to the next message, so
    that another tenant's is begun; of each tenant only so many wait like this, and no more bodies than fit in memory.
    """

    def __init__(self, slots: int, *, share: float, waiting_per_tenant_max: int) -> None:
        self._turns = asyncio.Semaphore(slots)
        self._per_tenant = slots if slots < SHARED_FROM else max(1, min(slots, int(slots * share)))
        self._waiting_max = waiting_per_tenant_max
        self._for_turn_max = slots
        self._waiting_bytes = 0
        self._tenants: dict[str, _Tenant] = {}

    @contextmanager
    def known(self, held: HeldMessage) -> Iterator[None]:
        """Count a message for its tenant as long as it is in hand."""
        tenant = self._tenants.setdefault(held.tenant, _Tenant(asyncio.Semaphore(self._per_tenant)))
        tenant.users += 1
        try:
            yield
        finally:
            tenant.users -= 1
            if not tenant.users:
                del self._tenants[held.tenant]
            if not held.has_slot:
                tenant.waiting -= 1
                self._waiting_bytes -= held.size_bytes

    async def take_turn(self, held: HeldMessage) -> None:
        """Wait for the message's turn to be handled; `end_turn` must follow."""
        tenant = self._tenants[held.tenant]
        if tenant.turns.locked():
            # More are taken in only to find other tenants' messages behind them, not to hoard this one's.
            self.step_aside(held, most=self._for_turn_max)
        await tenant.turns.acquire()
        try:
            await self._turns.acquire()
        except BaseException:
            tenant.turns.release()
            raise

    def end_turn(self, held: HeldMessage) -> None:
        """Let the next message have its turn."""
        self._turns.release()
        self._tenants[held.tenant].turns.release()

    def step_aside(self, held: HeldMessage, *, most: int | None = None) -> bool:
        """Give the message's slot to the next one; return False when too many of its tenant wait without one."""
        tenant = self._tenants[held.tenant]
        if not held.has_slot:
            return True
        full = tenant.waiting >= (self._waiting_max if most is None else most)
        if full or self._waiting_bytes + held.size_bytes > WAITING_MAX_BYTES:
            return False
        held.has_slot = False
        tenant.waiting += 1
        self._waiting_bytes += held.size_bytes
        held.free_slot()
        return True
