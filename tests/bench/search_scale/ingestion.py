"""How fast documents come in: by words alone, and with the model on board beside the model alone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from wayline.contracts.knowledge import IndexDocument
from wayline.retrieval.documents.decode_document import Limits
from wayline.retrieval.documents.document_table import DocumentTable
from wayline.retrieval.documents.index_document import Indexer
from wayline.retrieval.documents.wiring import passage_size
from wayline.retrieval.embeddings.embed_passages import PassageEmbedder
from wayline.retrieval.embeddings.embedding import Embedder
from wayline.retrieval.embeddings.kept_embeddings import KeptEmbeddingTable
from wayline.retrieval.settings import Settings
from wayline.store import Store
from wayline.telemetry import Telemetry

AT_ONCE = 4


@dataclass(frozen=True)
class Rate:
    """Passages that came in, and what that took."""

    passages: int
    seconds: float
    cpu_s: float
    """Of this process and of Postgres."""
    own_cpu_s: float
    """Of this process alone."""

    def on_idle_cpus(self, cpus: int) -> float:
        """Return the passages a second that so many CPUs with nothing else to do cannot exceed.

        A process runs on one of them at a time, and what Postgres does for it on the others.
        """
        return self.passages / max(self.own_cpu_s, self.cpu_s / cpus)


async def ingest_documents(
    store: Store, tenant: str, documents: Sequence[str], embedder: Embedder, *, vectors: bool, postgres: int
) -> Rate:
    """Read, cut and store documents; `vectors`: with theirs, else as the service does where these come later."""
    settings = Settings()
    limits = Limits(settings.document_bytes_max, settings.pdf_pages_max, settings.read_seconds_max, 16_384)
    indexer = Indexer(
        DocumentTable(store),
        embedder,
        PassageEmbedder(KeptEmbeddingTable(store), Telemetry("bench")),
        limits,
        passage_size(settings),
        embedder_of=None if vectors else lambda model, dimensions: embedder,
    )
    slots = asyncio.Semaphore(AT_ONCE)

    async def last() -> int:
        return len(documents)

    async def one(sequence: int, text: str) -> None:
        asked = IndexDocument(tenant=tenant, document_id=f"d{sequence}", name=f"Volume {sequence % 97}", text=text)
        async with slots:
            await indexer.index(asked, sequence=sequence, first_delivery=True, stream_last=last)

    cpu, own, started = cpu_seconds(postgres), time.process_time(), time.perf_counter()
    await asyncio.gather(*(one(n, text) for n, text in enumerate(documents, start=1)))
    seconds, cpu, own = time.perf_counter() - started, cpu_seconds(postgres) - cpu, time.process_time() - own
    stored = await store.fetchval(tenant, "SELECT count(*) FROM chunks WHERE tenant = $1", tenant)
    return Rate(stored, seconds, cpu, own)


async def embed_alone(embedder: Embedder, texts: Sequence[str]) -> Rate:
    """Embed as many passages, and store none."""
    cpu, started = time.process_time(), time.perf_counter()
    for batch in embedder.batches(texts):
        await embedder.embed(batch)
    used = time.process_time() - cpu
    return Rate(len(texts), time.perf_counter() - started, used, used)


def cpu_seconds(postgres: int) -> float:
    """Return what this process and Postgres' have used until now; a connection's counts while it is open."""
    return postgres_seconds(postgres) + time.process_time()


def postgres_seconds(postgres: int) -> float:
    """Return the CPU seconds that Postgres' processes have used until now; a connection's counts while it is open."""
    used_ns = 0
    for child in Path(f"/proc/{postgres}/task/{postgres}/children").read_text().split():
        try:
            used_ns += int(Path(f"/proc/{child}/schedstat").read_text().split()[0])
        except OSError:
            continue
    return used_ns / 1e9
