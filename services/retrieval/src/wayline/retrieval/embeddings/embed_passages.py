"""Embed passages batch by batch, keeping each batch as it comes, so that nothing is asked for or paid for twice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Protocol

from wayline.chassis import Failpoint, reach
from wayline.retrieval.embeddings.embed_texts import embedding_span
from wayline.retrieval.embeddings.embedding import Embedder
from wayline.telemetry import Telemetry, names

if TYPE_CHECKING:
    from wayline.retrieval.embeddings.embedding import Vector, Vectors
    from wayline.retrieval.embeddings.embedding_payments import Payer


class KeptEmbeddings(Protocol):
    """Embeddings of each tenant by model and text."""

    async def find(self, tenant: str, model: str, texts: Iterable[bytes]) -> Mapping[bytes, Vector]: ...

    async def keep(self, tenant: str, model: str, texts: Sequence[bytes], vectors: Vectors) -> None: ...


@dataclass(frozen=True, slots=True)
class PassageEmbedder:
    """Embeds passages of documents, of which there may be many."""

    kept: KeptEmbeddings
    telemetry: Telemetry

    async def embed(self, embedder: Embedder, tenant: str, texts: Sequence[str], *, payer: Payer | None) -> Vectors:
        """Embed texts, asking only for what is not kept. Raises Retry: what came until then is kept."""
        if not embedder.kept:
            with self._span(embedder) as span:
                vectors = await embedder.embed(texts, payer=payer)
                span.set_attribute(names.GEN_AI_EMBEDDING_DIMENSIONS, vectors.shape[1])
            return vectors
        keys = [text_sha256(text) for text in texts]
        found = dict(await self.kept.find(tenant, embedder.kept, keys))
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        if missing:
            found |= await self._asked(embedder, tenant, missing, payer)
        return _stacked([found[key] for key in keys])

    async def _asked(
        self, embedder: Embedder, tenant: str, missing: Mapping[bytes, str], payer: Payer | None
    ) -> dict[bytes, Vector]:
        keys, texts = list(missing), list(missing.values())
        found: dict[bytes, Vector] = {}
        with self._span(embedder) as span:
            at = 0
            for batch in embedder.batches(texts):
                vectors = await embedder.embed(batch, payer=payer)
                reach(Failpoint.RETRIEVAL_KEEP_BEFORE)
                of_batch = keys[at : at + len(batch)]
                await self.kept.keep(tenant, embedder.kept, of_batch, vectors)
                reach(Failpoint.RETRIEVAL_KEEP_AFTER)
                found |= zip(of_batch, vectors, strict=True)
                at += len(batch)
                span.set_attribute(names.GEN_AI_EMBEDDING_DIMENSIONS, vectors.shape[1])
        return found

    def _span(self, embedder: Embedder):
        return embedding_span(self.telemetry, embedder)


def text_sha256(text: str) -> bytes:
    """Return what a text is known by among the kept embeddings."""
    return sha256(text.encode(errors="replace")).digest()


def _stacked(rows: Sequence[Vector]) -> Vectors:
    import numpy as np

    return np.stack(rows)
