"""Wiring: the store, the embedder, the handlers bound to what they hear."""

from __future__ import annotations

from decimal import Decimal
from functools import partial
from pathlib import Path

import structlog

from wayline.chassis import BusSettings, Part, Service, connected
from wayline.chassis.concurrency.work_watch import Look, WorkWatch
from wayline.documents.reader_pool import ReaderPool
from wayline.retrieval.documents.handlers import DocumentHandlers
from wayline.retrieval.documents.wiring import document_asks, document_handlers, index_work, make_fetcher
from wayline.retrieval.embeddings.embed_passages import PassageEmbedder
from wayline.retrieval.embeddings.embed_texts import TextEmbedder
from wayline.retrieval.embeddings.embedders import Embedders
from wayline.retrieval.embeddings.embedding import Embedder
from wayline.retrieval.embeddings.kept_embeddings import KeptEmbeddingSweep, KeptEmbeddingTable
from wayline.retrieval.embeddings.openai_compatible import OpenAICompatible
from wayline.retrieval.embeddings.payments import OPEN_MAX_S, REPORT_EVERY_S, Payments, Reporter
from wayline.retrieval.erasure.wiring import erasure_asks
from wayline.retrieval.memory.consolidation import Consolidation, HourlyConsolidation
from wayline.retrieval.memory.wiring import forget_facts, memory_asks
from wayline.retrieval.postgres import open_store
from wayline.retrieval.search.old_words import OldWordsTable
from wayline.retrieval.search.passage_table import PassageTable
from wayline.retrieval.search.search_passages import Searcher
from wayline.retrieval.search.segments import SegmentBuilder
from wayline.retrieval.search.wiring import query_embedder, search_asks
from wayline.retrieval.search.word_counts import EVERY_S as COUNTS_EVERY_S
from wayline.retrieval.search.word_counts import WordCounts
from wayline.retrieval.search.word_renewal import WordRenewal
from wayline.retrieval.settings import Settings
from wayline.retrieval.tasks.wiring import task_asks
from wayline.retrieval.vector_sets.builder import EVERY_S as VECTORS_EVERY_S
from wayline.retrieval.vector_sets.builder import VectorBuilder
from wayline.retrieval.vector_sets.set_table import VectorSetTable
from wayline.retrieval.vector_sets.wiring import vector_set_asks
from wayline.store import Store
from wayline.telemetry import BusExporter, Telemetry

log = structlog.get_logger()

NAME = "retrieval"
ZERO = Decimal(0)
DAY_S = 86_400.0


async def build(settings: Settings | None = None, *, bus_settings: BusSettings | None = None) -> Service:
    """Build the service, connected and not yet listening."""
    settings, shared = settings or Settings(), bus_settings or BusSettings()
    dsn, wait_s = shared.dsn_of(NAME), settings.postgres_wait_s
    opening = partial(open_store, dsn, pool_size=settings.pool_size, wait_s=wait_s)
    bus, store = await connected(shared, NAME, opening)
    exporter = BusExporter(NAME)
    telemetry = Telemetry(NAME, exporter)
    embedders = Embedders(settings)
    embedder = embedders.default
    payments = Payments(store, bus, OpenAICompatible.provider, embedder.model, embedders.price)
    texts = TextEmbedder(embedder, telemetry, payments)
    queries = query_embedder(settings, texts, embedder_of=embedders.of_queries)
    reader = ReaderPool(memory_max_bytes=settings.read_memory_max_bytes)
    fetcher = make_fetcher(settings)
    passages, searched = PassageEmbedder(KeptEmbeddingTable(store), telemetry), PassageTable(store)
    handlers = document_handlers(
        settings,
        store=store,
        bus=bus,
        embedders=embedders,
        passages=passages,
        payments=payments,
        reader=reader,
        fetcher=fetcher,
    )
    searcher = Searcher(searched, queries, telemetry, settings.keyword_candidates, settings.leg_candidates)
    builder = VectorBuilder(VectorSetTable(store), embedders, passages, payments, searched)

    async def close() -> None:
        await reader.close()
        await fetcher.close()
        await queries.close()
        await embedders.close()
        await store.close()

    return Service(
        name=NAME,
        settings=shared,
        bus=bus,
        telemetry=telemetry,
        exporter=exporter,
        work=[index_work(handlers, slots=settings.index_slots)],
        asks=[
            *document_asks(handlers),
            *search_asks(searcher, slots=settings.search_slots),
            *vector_set_asks(VectorSetTable(store), settings),
            *task_asks(
                store,
                tasks_max=settings.tasks_per_tenant_max,
                edges_max=settings.task_edges_per_tenant_max,
                slots=settings.search_slots,
            ),
            *memory_asks(store, texts, per_tenant_max=settings.facts_per_tenant_max, slots=settings.search_slots),
            *erasure_asks(store, handlers.owners, delete_document=handlers.on_delete, forget_facts=forget_facts(store)),
        ],
        parts=_parts(settings, store, payments, handlers, builder),
        needs={"postgres": store.check},
        close=close,
    )


def migrations() -> Path:
    """Return where the files are that make the schema `retrieval`; it needs pgvector."""
    return Path(__file__).parent / "migrations"


def make_embedder(settings: Settings) -> Embedder:
    """Make the embedder that the settings name."""
    return Embedders(settings).default


def _parts(
    settings: Settings, store: Store, payments: Payments, handlers: DocumentHandlers, builder: VectorBuilder
) -> list[Part]:
    """Return what runs beside the messages."""
    counts, reporter = WordCounts(store), Reporter(payments)
    looks = {
        "counts": Look(counts.add_now, COUNTS_EVERY_S),
        "payments": Look(reporter.report_now, REPORT_EVERY_S),
        "vectors": Look(builder.embed_now, VECTORS_EVERY_S),
    }
    return [
        builder,
        WordRenewal(OldWordsTable(store)),
        counts,
        SegmentBuilder(store),
        reporter,
        WorkWatch(partial(store.true_columns, store.sql.work_due, OPEN_MAX_S), looks),
        handlers.deleted,
        _embedding_sweep(store, settings),
        HourlyConsolidation(Consolidation(store, settings.embedding_model)),
    ]


def _embedding_sweep(store: Store, settings: Settings) -> KeptEmbeddingSweep:
    return KeptEmbeddingSweep(
        store,
        unused_max_s=settings.embeddings_unused_max_days * DAY_S,
        per_tenant_max_bytes=settings.embeddings_per_tenant_max_bytes,
    )
