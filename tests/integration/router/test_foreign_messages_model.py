"""A record is ours or it is none: foreign messages in every log and among the signals change nothing, whoever dies.

A writer that does not hear that its record is in finds it, and is not fenced by it. The jobs start others, are
cancelled, and are held by processes that die or stall, as in the walk of families.
"""

from __future__ import annotations

import random
from collections import Counter
from contextvars import ContextVar
from types import ModuleType
from typing import Any

import pytest

from wayline.chassis import Bus
from wayline.contracts import headers as h
from wayline.contracts.errors import Unavailable
from wayline.journal import Fenced, Head, JobLog, is_record, record_read
from wayline.journal.log import bulk_read
from wayline.store import Store
from wayline.telemetry import metrics
from wayline.testkit.walks import seeds

from .conftest import TENANT, Office
from .family_world import LEAD, MODULES, FamilyWorld, walk

FOREIGN = (b"", b"{}", b"no JSON", b'{"stream":"EVENTS","seq":1}', b'{"events":[{"type":"job.completed","seq":2}]}')
MARKS = ({}, {h.RECORD: ""}, {h.RECORD: "state=ended"}, {h.SCHEMA: "signal/1"})
LOST_ACKS = 0.05
"""How often a writer does not hear that its record is in."""
LOGS, SIGNALS = "events", "signals"


WRITES: ContextVar[set[str]] = ContextVar("writes")
"""The ids of the records that the append under way has tried to write."""


class IntrudedWorld(FamilyWorld):
    """Somebody writes into every log before and after its records, and among the signals of its job."""

    def __init__(self, bus: Bus, store: Store, chance: random.Random) -> None:
        self._chance = chance
        self.planted = Counter[str]()
        """Foreign messages, by subject."""
        super().__init__(bus, store)

    def put_in_place(self, patch: pytest.MonkeyPatch, *modules: ModuleType) -> None:
        store, append = self.bus.store, JobLog._append  # pyright: ignore[reportPrivateUsage]

        async def intruded(subject: str, body: bytes, headers: dict[str, str], **named: Any) -> Any:
            if subject.startswith(LOGS):
                WRITES.get().add(headers[h.MSG_ID])
            await self.intrude(subject)
            ack = await store(subject, body, headers, **named)
            await self.intrude(subject)
            if subject.startswith(LOGS) and self._chance.random() < LOST_ACKS:
                raise Unavailable("the bus", detail="the ack is lost")
            return ack

        async def checked(log: JobLog, body: bytes, head: Head, *, expected: int) -> Head:
            WRITES.set(writes := set())
            try:
                stored = await append(log, body, head, expected=expected)
            except Fenced:
                newer = [one async for one in record_read(self.bus, log.subject, after=expected)]
                assert newer, f"a foreign message fenced a writer of {log.subject}"
                assert (newer[-1].headers or {})[h.MSG_ID] not in writes, f"a writer of {log.subject} fenced itself"
                raise
            between = [one async for one in record_read(self.bus, log.subject, after=expected, upto=stored.sequence)]
            assert len(between) == 1, f"{log.subject} got a record behind another writer's"
            return stored

        patch.setattr(self.bus, "store", intruded)
        patch.setattr(JobLog, "_append", checked)
        super().put_in_place(patch, *modules)

    async def intrude(self, subject: str, *, often: float = 0.3) -> None:
        """Write what is none of ours on a log or among the signals of its job, now and then."""
        if self._chance.random() >= often:
            return
        kind, _, job = subject.partition(".")
        if kind == LOGS and self._chance.random() < 0.2:
            subject = f"{SIGNALS}.{job}"
        headers = self._chance.choice(MARKS)
        await self.bus.js.publish(subject, self._chance.choice(FOREIGN), headers=headers or None)
        self.planted[subject] += 1

    async def check(self) -> None:
        """Check also that readers of a log count exactly what is foreign there."""
        await super().check()
        for job_id in await self.families():
            subject = f"{LOGS}.{TENANT}.{job_id}"
            foreign = [one async for one in bulk_read(self.bus, "EVENTS", subject) if not is_record(one.headers)]
            before = counted()
            async for _ in record_read(self.bus, subject):
                pass
            assert len(foreign) == self.planted[subject] == counted() - before


def counted() -> float:
    """Return how many foreign messages of logs this process has counted."""
    return metrics.foreign_messages.labels("EVENTS")._value.get()  # pyright: ignore[reportPrivateUsage]


@pytest.fixture
def chance(seed: int) -> random.Random:
    return random.Random(seed)


@pytest.fixture
async def world(bus: Bus, office: Office, monkeypatch: pytest.MonkeyPatch, chance: random.Random) -> IntrudedWorld:
    await office.agents.seed({"lead": LEAD})
    world = IntrudedWorld(bus, office.store, chance)
    world.put_in_place(monkeypatch, *MODULES)
    return world


@pytest.mark.parametrize("seed", seeds(4))
async def test_foreign_messages_change_no_job_whoever_dies(world: IntrudedWorld, chance: random.Random):
    await walk(world, chance)

    assert world.planted
