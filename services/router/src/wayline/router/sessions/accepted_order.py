"""The order in which submissions of a session were accepted, which is the order of its turns.

Routers handle many submissions at once, a large one takes longer than a small one, and a router that died or stands
still may have one in hand that comes to another later. So a router that takes a turn takes it for each older
submission of the session too that still lies in `SUBMIT`. Sequences only grow, so what lay in front of a submission is
read once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from wayline.chassis import Bus, Delivery
from wayline.contracts.jobs import SubmitJob
from wayline.journal import Stored, leader_next
from wayline.router.admission.earlier_turns import EarlierTurn, turn_in, turn_of

STREAM = "SUBMIT"
TENANTS_MAX = 1_000
HEARD_MAX = 1_000
"""Submissions of a tenant that are known without having been read from the stream: one that uses no sessions has none
read, and all that it submits is heard."""
OPEN_MAX = 10_000
"""Submissions of sessions that are known to have been there; beyond it those that have left are forgotten."""


@dataclass
class _Tenant:
    """What a router knows of a tenant's submissions."""

    read_to: int = 1
    """Each submission before this sequence that has to take a turn is in `open`, or has taken it."""
    heard: dict[int, EarlierTurn | None] = field(default_factory=dict)
    """Submissions that came here; None: it takes no turn, or has taken it."""
    open: dict[int, EarlierTurn] = field(default_factory=dict)
    in_hand: set[int] = field(default_factory=set)
    """Those that are being handled here."""
    reading: asyncio.Lock = field(default_factory=asyncio.Lock)


class AcceptedOrder:
    """Finds the submissions whose turns come before that of a job."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._tenants: dict[str, _Tenant] = {}

    @contextmanager
    def handling(self, job: SubmitJob, delivery: Delivery) -> Iterator[None]:
        """Know of a submission while it is handled here."""
        known, sequence = self._known(job.tenant), delivery.sequence
        if sequence >= known.read_to:
            if len(known.heard) >= HEARD_MAX:
                known.heard.clear()
            known.heard[sequence] = turn_of(job, delivery)
        known.in_hand.add(sequence)
        try:
            yield
        finally:
            known.in_hand.discard(sequence)

    async def before(self, job: SubmitJob, delivery: Delivery) -> tuple[EarlierTurn, ...]:
        """Return the submissions of a job's session that were accepted before it and may not have taken their turns.

        Raises Unavailable.
        """
        if job.session_id is None or job.options.dry_run:
            return ()
        known = self._known(job.tenant)
        await self._read(job.tenant, known, before=delivery.sequence)
        found: list[EarlierTurn] = []
        older = [
            (sequence, turn)
            for sequence, turn in known.open.items()
            if turn.session_id == job.session_id and sequence < delivery.sequence
        ]
        for sequence, turn in sorted(older):
            if sequence in known.in_hand or await self._lies_there(job.tenant, sequence):
                found.append(turn)
            else:
                known.open.pop(sequence, None)
        return tuple(found)

    def taken(self, tenant: str, sequences: Iterable[int]) -> None:
        """Note that submissions have taken their turns, or take none."""
        known = self._known(tenant)
        for sequence in sequences:
            known.open.pop(sequence, None)
            if sequence >= known.read_to:
                known.heard[sequence] = None

    def _known(self, tenant: str) -> _Tenant:
        if tenant not in self._tenants and len(self._tenants) >= TENANTS_MAX:
            self._tenants.clear()
        return self._tenants.setdefault(tenant, _Tenant())

    async def _read(self, tenant: str, known: _Tenant, *, before: int) -> None:
        """Read which submissions lie before one, from where the last reading ended."""
        async with known.reading:
            if len(known.open) >= OPEN_MAX:
                await self._forget(tenant, known)
            while known.read_to < before:
                sequence = known.read_to
                if sequence in known.heard:
                    turn = known.heard.pop(sequence)
                else:
                    stored = await self._next(tenant, sequence)
                    if stored is None or stored.sequence >= before:
                        known.read_to = before
                        break
                    sequence = stored.sequence
                    # It may have come here while it was read.
                    turn = known.heard.pop(sequence) if sequence in known.heard else self._turn(tenant, stored)
                if turn is not None:
                    known.open[sequence] = turn
                known.read_to = sequence + 1
            known.heard = {sequence: turn for sequence, turn in known.heard.items() if sequence >= known.read_to}

    async def _next(self, tenant: str, start: int) -> Stored | None:
        return await leader_next(self._bus, STREAM, f"jobs.submit.{tenant}", start=start)

    async def _lies_there(self, tenant: str, sequence: int) -> bool:
        stored = await self._next(tenant, sequence)
        return stored is not None and stored.sequence == sequence

    def _turn(self, tenant: str, stored: Stored) -> EarlierTurn | None:
        subject = f"jobs.submit.{tenant}"
        return turn_in(Delivery(STREAM, "", stored.sequence, 1, subject, stored.stored_ns, stored.headers, stored.body))

    async def _forget(self, tenant: str, known: _Tenant) -> None:
        """Forget submissions that lay before the first one that is still there."""
        first = await self._next(tenant, 1)
        known.open = {
            sequence: turn for sequence, turn in known.open.items() if first is not None and sequence >= first.sequence
        }
