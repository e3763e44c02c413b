"""What is remembered of a job's user, asked of retrieval: no job fails or waits long for it."""

from __future__ import annotations

import structlog

from wayline.chassis import Bus
from wayline.contracts.errors import Reject, Retry
from wayline.contracts.memory import (
    Fact,
    FactPage,
    FactsRecalled,
    FactsSaved,
    ListMemories,
    RecallMemories,
    SaveMemories,
)
from wayline.contracts.memory_summaries import MemoriesSummarized, SummarizeMemories

log = structlog.get_logger()

WAIT_S = 2.0
"""How long a job's first call is held up at most: without its memory a job goes on."""


KNOWN_MAX = 100
"""Facts about a user that are listed: more than one has."""


class Memories:
    """Retrieval's memory."""

    def __init__(self, bus: Bus, *, wait_s: float = WAIT_S) -> None:
        self._bus = bus
        self._wait_s = wait_s

    async def recall(self, asked: RecallMemories) -> FactsRecalled | None:
        """Return what is remembered; None: retrieval does not answer, or refuses."""
        try:
            return await self._bus.ask(asked, FactsRecalled, timeout_s=self._wait_s)
        except (Retry, Reject) as error:
            log.warning("a job goes on without what is remembered", tenant=asked.tenant, error=str(error))
            return None

    async def known(self, tenant: str, user_id: str) -> tuple[Fact, ...]:
        """Return the facts about a user that count. Raises Retry where retrieval does not answer, and Reject."""
        asked = ListMemories(tenant=tenant, user_id=user_id, limit=KNOWN_MAX)
        return (await self._bus.ask(asked, FactPage)).facts

    async def summarize(self, asked: SummarizeMemories) -> MemoriesSummarized:
        """Have summaries judged and kept, once for their key. Raises Retry where nobody answers, and Reject."""
        return await self._bus.ask(asked, MemoriesSummarized)

    async def save(self, asked: SaveMemories) -> FactsSaved:
        """Have facts judged and kept, once for their key. Raises Retry where retrieval does not answer, and Reject."""
        return await self._bus.ask(asked, FactsSaved)
