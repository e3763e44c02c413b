"""Which tickets go in front: a tenant's first one in its lane, whoever counts."""

from __future__ import annotations

from typing import NoReturn

import pytest
from nats.js import errors as js_errors

from wayline.chassis import Bus
from wayline.contracts.errors import Unavailable
from wayline.contracts.jobs import RunJob
from wayline.journal import signals_held
from wayline.router import ticket_lanes
from wayline.router.ticket_lanes import TicketLanes

FRONT, BACK = "interactive", "interactive_backlog"


async def lane_of(lanes: TicketLanes, job: str, *, tenant: str = "acme", lane: str = "interactive") -> str:
    return (await lanes.queue(RunJob(tenant=tenant, lane=lane, job=job, at=1))).lane


async def test_only_a_tenants_first_ticket_is_in_front(bus: Bus):
    lanes = TicketLanes(bus)

    assert [await lane_of(lanes, f"j{n}") for n in range(3)] == [FRONT, BACK, BACK]
    assert await lane_of(lanes, "other", tenant="umbrella") == FRONT
    assert await lane_of(lanes, "slow", lane="batch") == "batch"


async def test_the_next_ticket_is_in_front_when_all_have_ended(bus: Bus):
    lanes = TicketLanes(bus)
    for n in range(2):
        await lane_of(lanes, f"j{n}")

    lanes.note_end("acme")
    one_left = await lane_of(lanes, "j2")
    for _ in range(2):
        lanes.note_end("acme")

    assert (one_left, await lane_of(lanes, "j3")) == (BACK, FRONT)


async def test_tickets_of_another_router_are_counted(bus: Bus, monkeypatch):
    monkeypatch.setattr(ticket_lanes, "COUNT_FRESH_S", 0.0)
    monkeypatch.setattr(ticket_lanes, "PUBLISHED_WITHIN_S", 0.0)
    one, other = TicketLanes(bus), TicketLanes(bus)
    await lane_of(one, "j0")
    for n in range(3):
        ticket = await other.queue(RunJob(tenant="acme", job=f"o{n}", at=1))
        await bus.publish(ticket, msg_id=f"o{n}")

    one.note_end("acme")
    await lane_of(one, "j1")
    assert await lane_of(one, "j2") == BACK

    await bus.js.purge_stream("RUN")
    assert await lane_of(one, "j3") == FRONT, "what was acked is counted no longer"


async def test_a_stream_without_a_leader_fails_no_ticket(bus: Bus, monkeypatch: pytest.MonkeyPatch):
    async def no_leader(*_: object, **__: object) -> NoReturn:
        raise js_errors.ServiceUnavailableError(code=503, description="JetStream system temporarily unavailable")

    monkeypatch.setattr(ticket_lanes, "COUNT_FRESH_S", 0.0)
    lanes = TicketLanes(bus)
    await lane_of(lanes, "j1")
    monkeypatch.setattr(bus.js, "stream_info", no_leader)
    monkeypatch.setattr(bus.js, "consumer_info", no_leader)

    assert await lane_of(lanes, "j2") == BACK
    with pytest.raises(Unavailable):
        await signals_held(bus, "acme")
