"""Measure how near tools are to a query in meaning: retrieval's embedder makes the vectors, those of tools are kept."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import structlog

from wayline.contracts.errors import Reject, Retry
from wayline.contracts.knowledge import EMBEDDED_AT_ONCE_MAX, EmbeddedTexts, EmbedTexts
from wayline.tool_registry.tool_search import ToolIndex, ToolText
from wayline.tool_registry.tool_search.vector_cache import VectorCache

if TYPE_CHECKING:
    from wayline.tool_registry.tool_search.vector_cache import Vector

SILENT_S = 60.0
"""How long retrieval is left alone that has no embedder, or that could not embed a tenant's tools."""
SLOW_SILENT_S = 10.0
"""How long searches do not wait for one that was too slow or away."""

Embed = Callable[[EmbedTexts], Awaitable[EmbeddedTexts]]

log = structlog.get_logger()


class ToolEmbeddings:
    """Vectors of tools by the hash of their text, each made once in this process."""

    def __init__(
        self, embed: Embed, *, wait_s: float, kept_max_bytes: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._embed = embed
        self._wait_s = wait_s
        self._clock = clock
        self._model: str | None = None
        self._vectors = VectorCache(max_bytes=kept_max_bytes)
        self._filling: dict[str, asyncio.Task[None]] = {}
        self._silent_until: dict[str, float] = {}

    async def similar(self, tenant: str, query: str, index: ToolIndex) -> Mapping[int, float]:
        """Return cosines of a query and tools by place in the index; none without an embedder, or where it is slow.

        What tools lack a vector get one meanwhile, also after that time: the next search has them.
        """
        if not len(index) or self._clock() < self._silent_until.get(tenant, 0.0):
            return {}
        try:
            async with asyncio.timeout(self._wait_s):
                return await self._similar(tenant, query, index)
        except (TimeoutError, Retry, Reject) as error:
            self._silent_until[tenant] = self._clock() + SLOW_SILENT_S
            log.info("tools are searched by words alone", tenant=tenant, why=str(error) or "the embedder is slow")
            return {}

    async def close(self) -> None:
        """Stop embedding."""
        for task in self._filling.values():
            task.cancel()
        await asyncio.gather(*self._filling.values(), return_exceptions=True)

    async def _similar(self, tenant: str, query: str, index: ToolIndex) -> Mapping[int, float]:
        vectors = await self._ask(tenant, [query], holds=False)
        if vectors is None:
            self._silent_until[tenant] = self._clock() + SILENT_S
            return {}
        # What does not fit is compared by its words: it would push out the others, and all be embedded at each search.
        texts = index.texts[: self._vectors.room(vectors[0])]
        self._vectors.use(one.key for one in texts)
        if any(one.key not in self._vectors for one in texts):
            if tenant not in self._filling:
                self._filling[tenant] = asyncio.create_task(self._fill(tenant, texts))
            await asyncio.shield(self._filling[tenant])
        return await asyncio.to_thread(self._cosines, vectors[0], index)

    async def _fill(self, tenant: str, texts: Sequence[ToolText]) -> None:
        dropped = 0
        try:
            missing = list({one.key: one for one in texts if one.key not in self._vectors}.values())
            for at in range(0, len(missing), EMBEDDED_AT_ONCE_MAX):
                batch = missing[at : at + EMBEDDED_AT_ONCE_MAX]
                vectors = await self._ask(tenant, [one.text for one in batch], holds=True)
                for one, vector in zip(batch, vectors or (), strict=False):
                    dropped += self._vectors.keep(one.key, vector)
        except (Retry, Reject) as error:
            self._silent_until[tenant] = self._clock() + SILENT_S
            log.warning("tools have no embeddings yet", tenant=tenant, why=str(error))
        finally:
            del self._filling[tenant]
            if dropped:
                log.warning(
                    "vectors of tools were dropped: raise WAYLINE_TOOL_REGISTRY_SEARCH_VECTORS_MAX_BYTES",
                    tenant=tenant,
                    dropped=dropped,
                )

    async def _ask(self, tenant: str, texts: Sequence[str], *, holds: bool) -> list[Vector] | None:
        import numpy as np

        reply = await self._embed(EmbedTexts(tenant=tenant, texts=tuple(texts), holds=holds))
        if reply.model is None:
            return None
        if reply.model != self._model:
            # Vectors of two models cannot be compared.
            self._model = reply.model
            self._vectors.clear()
        return [np.frombuffer(base64.b64decode(one), "<f4") for one in reply.vectors]

    def _cosines(self, query: Vector, index: ToolIndex) -> Mapping[int, float]:
        import numpy as np

        known = [(at, self._vectors.get(one.key)) for at, one in enumerate(index.texts)]
        rows = [(at, vector) for at, vector in known if vector is not None and vector.shape == query.shape]
        if not rows:
            return {}
        cosines = np.stack([vector for _, vector in rows]) @ query
        return {at: float(cosine) for (at, _), cosine in zip(rows, cosines, strict=True)}
