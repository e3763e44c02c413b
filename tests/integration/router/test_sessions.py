"""What a session left warm is known for as long as the provider keeps it, and the table does not grow beyond that."""

from __future__ import annotations

from datetime import datetime, timedelta

from wayline.contracts.agents import Agent, AgentConfig
from wayline.contracts.budgets import LeftWarm
from wayline.contracts.events import Warm
from wayline.router.routes.session_caches import FORGOTTEN_AT_ONCE, WARM_MAX, SessionCaches

from .conftest import NOON, TENANT, Office

AGENT = Agent(name="assistant", version=3, config=AgentConfig())
MINUTES = timedelta(minutes=1)


def left(session: str = "s1", *, until: datetime = NOON + 5 * MINUTES, model: str = "a/m") -> LeftWarm:
    return LeftWarm(
        session_id=session, agent="assistant", agent_version=3, model=model, prefix_tokens=2_000, until=until
    )


async def test_a_session_is_warm_for_one_agent_version_and_time(office: Office):
    caches = SessionCaches(office.store)
    await caches.remember(TENANT, left(), now=NOON)

    async def warm(agent: Agent = AGENT, session: str = "s1", at: datetime = NOON) -> Warm | None:
        return await caches.warm(TENANT, session, agent, now=at)

    assert await warm() == Warm(model="a/m", prefix_tokens=2_000)
    assert await warm(at=NOON + 5 * MINUTES) is None
    assert await warm(AGENT.model_copy(update={"version": 4})) is None
    assert await warm(AGENT.model_copy(update={"name": "critic"})) is None
    assert await warm(session="s2") is None


async def test_the_newer_cache_report_wins_and_lasts_at_most_a_day(office: Office):
    caches = SessionCaches(office.store)
    await caches.remember(TENANT, left(model="a/new", until=NOON + 9 * MINUTES), now=NOON)
    await caches.remember(TENANT, left(model="a/old"), now=NOON)
    await caches.remember(TENANT, left("s2", until=NOON + 30 * WARM_MAX), now=NOON)
    await caches.remember(TENANT, left("s3", until=NOON), now=NOON)

    found = await caches.warm(TENANT, "s1", AGENT, now=NOON)
    rows = await office.store.fetch(TENANT, "SELECT session_id, until FROM session_caches ORDER BY session_id")
    assert found == Warm(model="a/new", prefix_tokens=2_000)
    assert [(row["session_id"], row["until"]) for row in rows] == [("s1", NOON + 9 * MINUTES), ("s2", NOON + WARM_MAX)]


async def test_what_is_over_is_forgotten_when_another_session_is_remembered(office: Office):
    caches = SessionCaches(office.store)
    for n in range(FORGOTTEN_AT_ONCE + 1):
        await caches.remember(TENANT, left(f"s{n}"), now=NOON)

    await caches.remember(TENANT, left("later", until=NOON + 60 * MINUTES), now=NOON + 30 * MINUTES)

    assert await office.store.fetchval(TENANT, "SELECT count(*) FROM session_caches") == 2
