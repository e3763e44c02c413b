"""Embed one query within a bound of time, or say why the search has to do without its vector."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import structlog

from wayline.contracts.errors import Reject, Retry
from wayline.contracts.knowledge import Degraded
from wayline.retrieval.embeddings.embed_texts import Embedded, TextEmbedder
from wayline.retrieval.embeddings.embedding import Embedder
from wayline.retrieval.embeddings.embedding_payments import Account
from wayline.retrieval.embeddings.live_sets import EmbedderOf, only

log = structlog.get_logger()

LATE_MAX = 32
"""Queries that are still being embedded after their searches went without."""
SLOW_PAUSE_S = 5.0
"""After an answer that did not come in time the provider is not asked for so long."""
ENTRY_BYTES = 300
"""Of a remembered vector beside its numbers and its query."""

Key: TypeAlias = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Silence:
    """Until when the provider is not asked, and why."""

    until: float
    why: Degraded


class QueryEmbedder:
    """Embeds queries, remembers the last ones of each tenant, and leaves a provider alone that does not answer.

    A tenant's own queries alone are remembered for it: none learns from an answer's time what another has asked.
    """

    def __init__(
        self,
        texts: TextEmbedder,
        *,
        within_s: float,
        remembered_max_bytes: int,
        embedder_of: EmbedderOf | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.texts = texts
        self.embedder_of = embedder_of or only(texts.embedder)
        self._within_s = within_s
        self._most = remembered_max_bytes
        self._clock = clock
        self._bytes = 0
        self._known: OrderedDict[Key, Embedded] = OrderedDict()
        self._asking: dict[Key, asyncio.Task[Embedded]] = {}
        self._silent: dict[str, Silence] = {}

    async def embed(
        self, tenant: str, query: str, account: Account | None, *, embedder: Embedder | None = None
    ) -> Embedded | Degraded:
        """Return the query's vector, or why there is none. An answer that comes late is remembered."""
        embedder = embedder or self.texts.embedder
        if not embedder.kept:
            return await self.texts.embed_for(account, [query], embedder=embedder)
        key = (tenant, embedder.kept, query)
        if (known := self._known.get(key)) is not None:
            self._known.move_to_end(key)
            return known
        silent = self._silent.get(embedder.kept)
        if silent is not None and self._clock() < silent.until:
            return silent.why
        task = self._asking.get(key)
        if task is None:
            if len(self._asking) >= LATE_MAX:
                return _slow(embedder, self._within_s)
            task = self._ask(key, query, account, embedder)
        return await self._in_time(task, embedder)

    async def close(self) -> None:
        """End what is still being asked."""
        for task in self._asking.values():
            task.cancel()
        await asyncio.gather(*self._asking.values(), return_exceptions=True)

    def _ask(self, key: Key, query: str, account: Account | None, embedder: Embedder) -> asyncio.Task[Embedded]:
        task = asyncio.create_task(self.texts.embed_for(account, [query], embedder=embedder), name="embed a query")
        self._asking[key] = task

        def ended(task: asyncio.Task[Embedded]) -> None:
            del self._asking[key]
            if not task.cancelled() and task.exception() is None:
                self._remember(key, task.result())

        task.add_done_callback(ended)
        return task

    async def _in_time(self, task: asyncio.Task[Embedded], embedder: Embedder) -> Embedded | Degraded:
        try:
            async with asyncio.timeout(self._within_s):
                # Not cancelled when the time is over: it is paid for, and the same query will find it.
                return await asyncio.shield(task)
        except TimeoutError:
            return self._silence(embedder, SLOW_PAUSE_S, _slow(embedder, self._within_s))
        except Retry as error:
            why = Degraded(leg="vectors", reason="provider", detail=str(error))
            return self._silence(embedder, error.after_s, why)
        except Reject as error:
            return Degraded(leg="vectors", reason="provider", detail=str(error))

    def _silence(self, embedder: Embedder, for_s: float, why: Degraded) -> Degraded:
        self._silent[embedder.kept] = Silence(self._clock() + for_s, why)
        log.warning("queries are not embedded for a while", model=embedder.model, for_s=for_s, why=why.detail)
        return why

    def _remember(self, key: Key, embedded: Embedded) -> None:
        if key in self._known:
            return
        self._known[key] = embedded
        self._bytes += _size(key, embedded)
        while self._bytes > self._most and self._known:
            self._bytes -= _size(*self._known.popitem(last=False))


def _size(key: Key, embedded: Embedded) -> int:
    return embedded.vectors.nbytes + len(key[2].encode(errors="replace")) + ENTRY_BYTES


def _slow(embedder: Embedder, within_s: float) -> Degraded:
    detail = f"the embedding model {embedder.model} did not answer within {within_s:g} s"
    return Degraded(leg="vectors", reason="slow", detail=detail)
