"""Which of several routers gives the turns of a lane."""

from __future__ import annotations

import pytest

from wayline.router.fair_share import share_table
from wayline.router.fair_share.share_table import LaneTurns, ShareTable
from wayline.store import PostgresUnavailable
from wayline.testkit import until

from .conftest import Offices

LANE = "interactive"


async def test_a_lane_is_left_to_the_router_that_just_gave_turns(offices: Offices):
    table = ShareTable((await offices()).store)
    async with table.held(LANE, by="a", left_s=60) as first:
        assert first is not None
        await first.save(LaneTurns(taken=5))

    async with table.held(LANE, by="b", left_s=60) as left, table.held(LANE, by="a", left_s=60) as again:
        assert left is None
        assert again is not None and again.turns.taken == 5, "the other's look does not stand in its way"


async def test_only_one_router_gives_turns_at_a_time(offices: Offices):
    table = ShareTable((await offices()).store)
    async with table.held(LANE, by="a", left_s=0):
        pass

    async with table.held(LANE, by="a", left_s=0) as one, table.held(LANE, by="b", left_s=0) as beside:
        assert one is not None and beside is None


async def test_a_lane_without_recent_turns_is_taken_over_as_it_stands(offices: Offices):
    table = ShareTable((await offices()).store)
    async with table.held(LANE, by="gone", left_s=60) as first:
        assert first is not None
        await first.save(LaneTurns(taken=5))

    async with table.held(LANE, by="other", left_s=0) as taken_over:
        assert taken_over is not None and taken_over.turns.taken == 5


async def test_a_frozen_router_does_not_keep_its_lane(offices: Offices, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(share_table, "HELD_IDLE_MAX_S", 0.2)
    frozen, other = ShareTable((await offices()).store), ShareTable((await offices()).store)
    async with other.held(LANE, by="other", left_s=0):
        pass

    async def is_free() -> bool:
        async with other.held(LANE, by="other", left_s=0) as held:
            return held is not None

    with pytest.raises(PostgresUnavailable):
        async with frozen.held(LANE, by="frozen", left_s=0) as held:
            assert held is not None
            await until(is_free, why="Postgres ends what is idle")
            await held.save(LaneTurns())
