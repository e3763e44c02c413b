"""Two hundred submissions of random sizes to one session, and the order of their turns."""

from __future__ import annotations

import random
from typing import Any

import orjson

from wayline.contracts.errors import Refused
from wayline.contracts.sessions import GetSession, SessionTurns
from wayline.testkit import Platform, until

SUBMISSIONS = 200
SIZES = (10, 10, 200, 2_000, 20_000, 110_000)
TURNS_A_PAGE = 100


async def run_seed(platform: Platform, seed: int) -> None:
    """Submit them, as fast as the bus takes them, and require that their turns stand in the same order."""
    rng, session = random.Random(seed), f"order-{seed}"
    names = [f"o{seed}-{n}" for n in range(SUBMISSIONS)]
    for name in names:
        body = {"agent": "assistant", "input": "x" * rng.choice(SIZES), "job_id": name, "session_id": session}
        await platform.publish(orjson.dumps(body))
    found: list[str] = []

    async def all_taken() -> bool:
        found[:] = await turns(platform, session)
        return len(found) >= SUBMISSIONS

    await until(all_taken, within=60, why="each has its turn")
    assert found == names


async def turns(platform: Platform, session: str) -> list[str]:
    """Return the jobs of a session in the order of their turns."""
    found: list[Any] = []
    before: int | None = None
    while True:
        request = GetSession(tenant="default", session_id=session, before=before, limit=TURNS_A_PAGE)
        try:
            answer = await platform.bus.ask(request, SessionTurns)
        except Refused:
            return []
        found += answer.page
        if answer.next_before is None:
            return [turn.job_id for turn in reversed(found)]
        before = answer.next_before
