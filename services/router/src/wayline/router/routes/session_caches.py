"""What sessions have left in providers' caches, for the time that it is kept there."""

from __future__ import annotations

from datetime import datetime, timedelta

from wayline.contracts.agents import Agent
from wayline.contracts.budgets import LeftWarm
from wayline.contracts.events import Warm
from wayline.store import Store

WARM_MAX = timedelta(days=1)
"""No cache is believed in for longer, whatever a model's card says."""
FORGOTTEN_AT_ONCE = 100
"""Sessions whose cache is over that are forgotten when another is remembered: so the table never grows for long."""


class SessionCaches:
    """One row a session, overwritten by its next job."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def remember(self, tenant: str, left: LeftWarm, *, now: datetime) -> None:
        """Keep what a job left; what is over is forgotten on the way, and an older word changes nothing."""
        until = min(left.until, now + WARM_MAX)
        if until <= now:
            return
        place = (left.session_id, left.agent, left.agent_version, left.model, left.prefix_tokens)
        await self._store.execute(
            tenant, self._store.sql.remember_session, tenant, *place, until, now, FORGOTTEN_AT_ONCE
        )

    async def warm(self, tenant: str, session_id: str, agent: Agent, *, now: datetime) -> Warm | None:
        """Return what is warm for a job of this session: another agent, or another version, has another prefix."""
        row = await self._store.fetchrow(
            tenant, self._store.sql.warm_session, tenant, session_id, agent.name, agent.version, now
        )
        return Warm(model=row["model"], prefix_tokens=row["prefix_tokens"]) if row else None
