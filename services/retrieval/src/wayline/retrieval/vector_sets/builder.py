"""Embed in the background what has no vector yet, compare a set that is whole with the live one, and switch."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog

from wayline.chassis import Failpoint, Periodic, reach
from wayline.chassis.concurrency.work_watch import LOOK_ANYWAY_S
from wayline.contracts.errors import NotFound, Reject, Retry
from wayline.retrieval.embeddings.embed_passages import PassageEmbedder
from wayline.retrieval.embeddings.embedders import Embedders
from wayline.retrieval.embeddings.embedding_payments import Accounts
from wayline.retrieval.errors import ProviderRefused
from wayline.retrieval.search.passage_table import QUERIES_REMEMBERED_MAX, PassageTable
from wayline.retrieval.vector_sets.set_table import Pending, VectorSetTable
from wayline.store import Record

log = structlog.get_logger()

EVERY_S = 1.0
UPKEEP_EVERY_S = 60.0
AT_ONCE = 4
"""Tenants whose documents are embedded side by side in this process."""
REFUSED_AGAIN_S = 600.0
"""After a budget without room, or a provider that refuses."""
COMPARED_PASSAGES = 10
ERROR_MAX_CHARS = 500


@dataclass(slots=True)
class VectorBuilder:
    """What makes vectors beside everything else; any number of processes may do the same."""

    sets: VectorSetTable
    embedders: Embedders
    passages: PassageEmbedder
    payments: Accounts
    asked: PassageTable
    embed_now: Callable[[], None] = field(init=False)
    """Have what is due embedded at once."""
    _parts: tuple[Periodic, ...] = field(init=False)

    def __post_init__(self) -> None:
        embedding = Periodic("vectors of documents", self.embed, every_s=LOOK_ANYWAY_S)
        self.embed_now = embedding.now
        self._parts = (
            embedding,
            Periodic("upkeep of vector sets", self.upkeep, every_s=UPKEEP_EVERY_S),
        )

    async def start(self) -> None:
        for part in self._parts:
            await part.start()

    async def stop(self, grace_s: float) -> None:
        """End in the middle of a document: what is embedded is kept, and another process goes on."""
        await asyncio.gather(*(part.stop(0) for part in self._parts))

    async def embed(self) -> None:
        """Embed until nothing is due, a part of one document of each tenant at a time; then switch what is whole."""
        while tenants := await self.sets.tenants_waiting():
            free = asyncio.Semaphore(AT_ONCE)

            async def part(tenant: str, free: asyncio.Semaphore = free) -> None:
                async with free:
                    await self._part(tenant)

            await asyncio.gather(*(part(tenant) for tenant in tenants))
        for built in await self.sets.whole():
            await self._end(built)

    async def upkeep(self) -> None:
        """Begin sets of the settings' model, store the last queries, and forget old sets."""
        embedder = self.embedders.default
        await self.sets.rebuild(embedder.model, embedder.asked_dimensions)
        await self.asked.store_queries()
        await self.sets.sweep()

    async def _part(self, tenant: str) -> None:
        pending = await self.sets.claim(tenant)
        if pending is None:
            return
        try:
            of = await self.sets.get(tenant, pending.set_id)
            if of is None or not await self._embedded(pending, of):
                await self.sets.end(pending)
            else:
                await self.sets.release(pending)
        except Retry as error:
            await self.sets.release(pending, again_in_s=error.after_s, error=str(error)[:ERROR_MAX_CHARS])
        except Reject as error:
            await self.sets.release(pending, again_in_s=REFUSED_AGAIN_S, error=str(error)[:ERROR_MAX_CHARS])

    async def _embedded(self, pending: Pending, of: Record) -> bool:
        """Embed the next passages of a document; False: there are none. Raises Retry, NoBudget, ProviderRefused."""
        passages = await self.sets.passages(pending, of)
        if not passages:
            return False
        embedder = self.embedders.of_documents(of["model"], of["asked_dimensions"])
        payer = self.payments.account(pending.tenant, holds=True, model=embedder.model)
        texts = [passage.text for passage in passages]
        vectors = await self.passages.embed(embedder, pending.tenant, texts, payer=payer)
        if of["dimensions"] not in (None, vectors.shape[1]):
            raise ProviderRefused(
                f"{of['model']} gives {vectors.shape[1]} dimensions now, and gave {of['dimensions']}: build a new set"
            )
        reach(Failpoint.RETRIEVAL_VECTORS_BEFORE)
        await self.sets.store(pending, passages, vectors)
        reach(Failpoint.RETRIEVAL_VECTORS_AFTER)
        return True

    async def _end(self, built: Record) -> None:
        """Compare a set that is whole with the live one, and switch where that was wanted."""
        tenant = built["tenant"]
        if built["state"] == "building":
            await self._compare(tenant, built)
        if not built["automatic"]:
            return
        reach(Failpoint.RETRIEVAL_SWITCH_BEFORE)
        try:
            await self.sets.switch(tenant, automatic=True)
        except NotFound:
            # Another process was first.
            return
        reach(Failpoint.RETRIEVAL_SWITCH_AFTER)
        log.info("another set of vectors is searched", tenant=tenant, model=built["model"])

    async def _compare(self, tenant: str, built: Record) -> None:
        """Ask a set that is whole and the live one the tenant's last queries."""
        live = await self.sets.live(tenant)
        await self.asked.store_queries()
        queries = await self.sets.last_queries(tenant, QUERIES_REMEMBERED_MAX)
        overlap = None
        if live is not None and queries:
            try:
                overlap = await self._overlap(tenant, built, live, queries)
            except (Retry, Reject) as error:
                log.warning("a set of vectors is not compared", tenant=tenant, why=str(error))
        await self.sets.compared(
            tenant, built["set_id"], overlap=overlap, queries=0 if overlap is None else len(queries)
        )

    async def _overlap(self, tenant: str, built: Record, live: Record, queries: list[str]) -> float:
        """Return the share of the ten nearest passages that both sets have in common. Raises Retry, and Reject."""
        found: list[list[set[str]]] = []
        for one in (built, live):
            embedder = self.embedders.of_queries(one["model"], one["asked_dimensions"])
            payer = self.payments.account(tenant, holds=True, model=embedder.model)
            vectors = await self.passages.embed(embedder, tenant, queries, payer=payer)
            found.append(
                [await self.sets.nearest(tenant, one["set_id"], vector, COMPARED_PASSAGES) for vector in vectors]
            )
        shares = [len(new & now) / max(1, len(now)) for new, now in zip(*found, strict=True)]
        return sum(shares) / len(shares)
