"""Wiring: the store, the embedder, the handlers bound to what they hear."""

from __future__ import annotations

from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import structlog

from wayline.chassis import Ask, Bus, BusSettings, Failpoint, Part, Service, Work, asks, connected, reach
from wayline.chassis.topology import INDEX_RETRIEVAL
from wayline.contracts.knowledge import (
    AcceptDocument,
    DeleteDocument,
    DescribeAttachments,
    EmbedTexts,
    GetDocument,
    IndexDocument,
    ListDocuments,
    ReadAttachment,
    ReadDocument,
    ReserveUpload,
    SearchKnowledge,
)
from wayline.documents.reader_pool import ReaderPool
from wayline.guarded_http import Limits as FetchLimits
from wayline.retrieval.adapters.deleted_documents import DeletedDocuments
from wayline.retrieval.adapters.document_owners import DocumentOwners
from wayline.retrieval.adapters.documents import DocumentTable
from wayline.retrieval.adapters.embedders import Embedders
from wayline.retrieval.adapters.fetched_documents import DocumentFetcher
from wayline.retrieval.adapters.kept_embeddings import KeptEmbeddingSweep, KeptEmbeddingTable
from wayline.retrieval.adapters.old_words import OldWordsTable
from wayline.retrieval.adapters.openai_compatible import OpenAICompatible
from wayline.retrieval.adapters.originals import Originals
from wayline.retrieval.adapters.passages import PassageTable
from wayline.retrieval.adapters.payments import Payments, Reporter
from wayline.retrieval.adapters.postgres import open_store
from wayline.retrieval.adapters.queue import read_last, read_queue
from wayline.retrieval.adapters.segments import SegmentBuilder
from wayline.retrieval.adapters.uploads import UploadTable
from wayline.retrieval.adapters.word_counts import WordCounts
from wayline.retrieval.chunking import Size
from wayline.retrieval.decode_document import Limits
from wayline.retrieval.embed_passages import PassageEmbedder
from wayline.retrieval.embed_queries import QueryEmbedder
from wayline.retrieval.embed_texts import TextEmbedder
from wayline.retrieval.embedding import Embedder
from wayline.retrieval.erasure.wiring import erasure_asks
from wayline.retrieval.handlers import Handlers
from wayline.retrieval.index_document import Indexer
from wayline.retrieval.live_sets import EmbedderOf
from wayline.retrieval.memory.consolidation import Consolidation, HourlyConsolidation
from wayline.retrieval.memory.wiring import forget_facts, memory_asks
from wayline.retrieval.minilm.on_board import PASSAGE_TOKENS_MAX, PassageTokens
from wayline.retrieval.search_passages import Searcher
from wayline.retrieval.settings import ON_BOARD_MODEL, Settings
from wayline.retrieval.tasks.wiring import task_asks
from wayline.retrieval.vector_sets.builder import VectorBuilder
from wayline.retrieval.vector_sets.set_table import VectorSetTable
from wayline.retrieval.vector_sets.wiring import vector_set_asks
from wayline.retrieval.word_renewal import WordRenewal
from wayline.store import Store
from wayline.telemetry import BusExporter, Telemetry

log = structlog.get_logger()

NAME = "retrieval"
ZERO = Decimal(0)
DAY_S = 86_400.0
INDEX_ATTEMPTS_MAX = 5
"""Deliveries of a document after which it is given up: each may have killed the process, with others in hand."""


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
    handlers = _handlers(
        settings,
        store=store,
        bus=bus,
        telemetry=telemetry,
        queries=queries,
        payments=payments,
        reader=reader,
        fetcher=fetcher,
        passages=passages,
        searched=searched,
        embedders=embedders,
    )

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
        work=[_work(handlers, slots=settings.index_slots)],
        asks=[
            *_asks(handlers, search_slots=settings.search_slots),
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


def query_embedder(settings: Settings, texts: TextEmbedder, *, embedder_of: EmbedderOf | None = None) -> QueryEmbedder:
    """Make what embeds queries within the settings' bounds."""
    return QueryEmbedder(
        texts,
        within_s=settings.query_embedding_max_s,
        remembered_max_bytes=settings.query_vectors_max_bytes,
        embedder_of=embedder_of,
    )


def passage_size(settings: Settings) -> Size:
    """Return how much a passage may hold, in tokens of the model on board where that embeds it."""
    if settings.embedding_model == ON_BOARD_MODEL:
        tokens_max = min(settings.chunk_tokens, PASSAGE_TOKENS_MAX)
        return Size(settings.chunk_chars, tokens_max, PassageTokens())
    return Size(settings.chunk_chars, settings.chunk_tokens)


def make_fetcher(settings: Settings) -> DocumentFetcher:
    """Make what fetches documents from addresses, as the settings allow."""
    return DocumentFetcher.of(
        wanted=settings.fetch_urls,
        hosts=settings.fetch_allowed_hosts,
        proxy=settings.http_proxy.get_secret_value() if settings.http_proxy else None,
        ca_file=str(settings.ca_file) if settings.ca_file else None,
        limits=FetchLimits(body_max_bytes=settings.document_bytes_max, total_s=settings.fetch_seconds_max),
    )


def _handlers(
    settings: Settings,
    *,
    store: Store,
    bus: Bus,
    telemetry: Telemetry,
    queries: QueryEmbedder,
    payments: Payments,
    reader: ReaderPool,
    fetcher: DocumentFetcher,
    passages: PassageEmbedder,
    searched: PassageTable,
    embedders: Embedders,
) -> Handlers:
    documents = DocumentTable(store)
    uploads = UploadTable(store, per_tenant_max_bytes=settings.uploads_per_tenant_max_bytes)
    limits = Limits(
        bytes_max=settings.document_bytes_max,
        pdf_pages_max=settings.pdf_pages_max,
        read_seconds_max=settings.read_seconds_max,
        metadata_bytes_max=settings.metadata_bytes_max,
        page_seconds_max=settings.page_seconds_max,
    )
    return Handlers(
        documents=documents,
        originals=Originals(store),
        owners=DocumentOwners(store),
        uploads=uploads,
        indexer=Indexer(
            documents,
            embedders.default,
            passages,
            limits,
            passage_size(settings),
            payments,
            reader,
            fetcher.fetch,
            embedders.of_documents,
        ),
        searcher=Searcher(
            searched,
            queries,
            telemetry,
            settings.keyword_candidates,
            settings.leg_candidates,
        ),
        deleted=DeletedDocuments(store, uploads, queue=partial(read_queue, bus), drop=bus.uploads.drop),
        stream_last=partial(read_last, bus),
    )


def _parts(
    settings: Settings, store: Store, payments: Payments, handlers: Handlers, builder: VectorBuilder
) -> list[Part]:
    """Return what runs beside the messages."""
    return [
        builder,
        WordRenewal(OldWordsTable(store)),
        WordCounts(store),
        SegmentBuilder(store),
        Reporter(payments),
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


def _work(handlers: Handlers, *, slots: int) -> Work[IndexDocument]:
    return Work(
        INDEX_RETRIEVAL,
        IndexDocument,
        handlers.on_index,
        slots=slots,
        attempts_max=INDEX_ATTEMPTS_MAX,
        before_dead=handlers.on_given_up,
        after_ack=partial(reach, Failpoint.RETRIEVAL_ACK_AFTER),
    )


def _asks(handlers: Handlers, *, search_slots: int) -> list[Ask[Any]]:
    return [
        asks(AcceptDocument, handlers.on_accept),
        asks(GetDocument, handlers.on_get),
        asks(ListDocuments, handlers.on_list),
        asks(DeleteDocument, handlers.on_delete),
        asks(DescribeAttachments, handlers.on_describe),
        asks(ReadAttachment, handlers.on_read),
        asks(ReadDocument, handlers.on_text),
        asks(ReserveUpload, handlers.on_reserve),
        asks(SearchKnowledge, handlers.on_search, slots=search_slots),
        asks(EmbedTexts, handlers.on_embed, slots=search_slots),
    ]
