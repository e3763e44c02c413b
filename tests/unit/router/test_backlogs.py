"""Where a tenant's further tickets are queued."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from nats.js import errors as js_errors

from wayline.contracts.errors import Unavailable
from wayline.router.fair_share import backlogs
from wayline.router.fair_share.backlogs import Backlogs, LaneState


@pytest.mark.parametrize(
    "error",
    [
        js_errors.ServiceUnavailableError(code=503, description="JetStream system temporarily unavailable"),
        js_errors.NotFoundError(code=404, description="consumer not found"),
        Unavailable("the bus", detail="reading a ticket"),
        TimeoutError(),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_a_lane_that_cannot_be_read_fails_no_ticket(monkeypatch: pytest.MonkeyPatch, error: Exception):
    async def read_lane(*_: object) -> LaneState:
        raise error

    monkeypatch.setattr(backlogs, "read_lane", read_lane)

    assert await Backlogs(cast("Any", None)).place("acme", "interactive") == "interactive_backlog"


async def test_tickets_queued_beside_each_other_share_one_read(monkeypatch: pytest.MonkeyPatch):
    reads = list[str]()

    async def read_lane(_: object, lane: str) -> LaneState:
        reads.append(lane)
        await asyncio.sleep(0)
        return LaneState(
            backlog=20, first="other", waiting={"acme": 1}, waiting_since=0, nearly_full=False, read_at=0.0
        )

    monkeypatch.setattr(backlogs, "read_lane", read_lane)
    chosen = Backlogs(cast("Any", None))
    places = await asyncio.gather(*(chosen.place("acme", "batch") for _ in range(20)))

    assert set(places) == {"batch_waiting"}
    assert len(reads) <= 2, "one for all, and one more because the first was old at once"
