"""Which of several routers gives the turns of a lane."""

from __future__ import annotations

from wayline.router.fair_share.share_table import LaneTurns, ShareTable

from .conftest import Offices

LANE = "interactive"


async def test_a_lane_is_left_to_the_router_that_just_gave_turns(offices: Offices):
    table = ShareTable((await offices()).store)
    async with table.held(LANE, by="a", left_s=60) as first:
        assert first is not None
        await first.save(LaneTurns(taken=5))

    async with table.held(LANE, by="b", left_s=60) as left, table.held(LANE, by="a", left_s=60) as beside:
        assert (left, beside) == (None, None), "only one looks at a time"
    async with table.held(LANE, by="a", left_s=60) as again:
        assert again is not None and again.turns.taken == 5


async def test_a_lane_without_recent_turns_is_taken_over_as_it_stands(offices: Offices):
    table = ShareTable((await offices()).store)
    async with table.held(LANE, by="gone", left_s=60) as first:
        assert first is not None
        await first.save(LaneTurns(taken=5))

    async with table.held(LANE, by="other", left_s=0) as taken_over:
        assert taken_over is not None and taken_over.turns.taken == 5
