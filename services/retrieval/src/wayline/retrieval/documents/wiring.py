"""What documents are made of, and what they hear."""

from __future__ import annotations

import shutil
from functools import partial
from typing import Any

from wayline.chassis import Ask, Bus, Failpoint, Work, asks, reach
from wayline.chassis.topology import INDEX_RETRIEVAL
from wayline.contracts.document_changes import ChangeDocument, ListChunks
from wayline.contracts.knowledge import (
    AcceptDocument,
    DeleteDocument,
    DescribeAttachments,
    GetDocument,
    IndexDocument,
    ListDocuments,
    ReadAttachment,
    ReadDocument,
    ReserveUpload,
)
from wayline.documents.reader_pool import ReaderPool
from wayline.guarded_http import Limits as FetchLimits
from wayline.retrieval.documents.change_documents import DocumentChanges
from wayline.retrieval.documents.chunking import Size
from wayline.retrieval.documents.decode_document import Limits
from wayline.retrieval.documents.deleted_documents import DeletedDocuments
from wayline.retrieval.documents.document_owners import DocumentOwners
from wayline.retrieval.documents.document_table import DocumentTable
from wayline.retrieval.documents.fetched_documents import DocumentFetcher
from wayline.retrieval.documents.handlers import DocumentHandlers
from wayline.retrieval.documents.index_document import Indexer
from wayline.retrieval.documents.originals import Originals
from wayline.retrieval.documents.queue import read_last, read_queue
from wayline.retrieval.documents.uploads import UploadTable
from wayline.retrieval.embeddings.embed_passages import PassageEmbedder
from wayline.retrieval.embeddings.embedders import Embedders
from wayline.retrieval.embeddings.minilm.on_board import PASSAGE_TOKENS_MAX, PassageTokens
from wayline.retrieval.embeddings.payments import Payments
from wayline.retrieval.settings import ON_BOARD_MODEL, Settings
from wayline.store import Store

OCR_PROGRAM = "tesseract"
INDEX_ATTEMPTS_MAX = 5
"""Deliveries of a document after which it is given up: each may have killed the process, with others in hand."""


def document_handlers(
    settings: Settings,
    *,
    store: Store,
    bus: Bus,
    embedders: Embedders,
    passages: PassageEmbedder,
    payments: Payments,
    reader: ReaderPool,
    fetcher: DocumentFetcher,
) -> DocumentHandlers:
    """Make what handles the messages about documents."""
    documents, originals = DocumentTable(store), Originals(store)
    uploads = UploadTable(store, per_tenant_max_bytes=settings.uploads_per_tenant_max_bytes)
    indexer = Indexer(
        documents,
        embedders.default,
        passages,
        _limits(settings),
        passage_size(settings),
        payments,
        reader,
        fetch=fetcher.fetch,
        kept=originals.whole,
        embedder_of=embedders.of_documents,
    )
    return DocumentHandlers(
        documents=documents,
        originals=originals,
        owners=DocumentOwners(store),
        uploads=uploads,
        indexer=indexer,
        deleted=DeletedDocuments(store, uploads, queue=partial(read_queue, bus), drop=bus.uploads.drop),
        changes=DocumentChanges(store, metadata_bytes_max=settings.metadata_bytes_max),
        stream_last=partial(read_last, bus),
    )


def index_work(handlers: DocumentHandlers, *, slots: int) -> Work[IndexDocument]:
    """Return the consumer of documents to be indexed."""
    return Work(
        INDEX_RETRIEVAL,
        IndexDocument,
        handlers.on_index,
        slots=slots,
        attempts_max=INDEX_ATTEMPTS_MAX,
        before_dead=handlers.on_given_up,
        after_ack=partial(reach, Failpoint.RETRIEVAL_ACK_AFTER),
    )


def document_asks(handlers: DocumentHandlers) -> list[Ask[Any]]:
    """Return the requests about documents, bound to what answers them."""
    return [
        asks(AcceptDocument, handlers.on_accept),
        asks(GetDocument, handlers.on_get),
        asks(ListDocuments, handlers.on_list),
        asks(ChangeDocument, handlers.on_change),
        asks(ListChunks, handlers.on_chunks),
        asks(DeleteDocument, handlers.on_delete),
        asks(DescribeAttachments, handlers.on_describe),
        asks(ReadAttachment, handlers.on_read),
        asks(ReadDocument, handlers.on_text),
        asks(ReserveUpload, handlers.on_reserve),
    ]


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


def _limits(settings: Settings) -> Limits:
    return Limits(
        bytes_max=settings.document_bytes_max,
        pdf_pages_max=settings.pdf_pages_max,
        read_seconds_max=settings.read_seconds_max,
        metadata_bytes_max=settings.metadata_bytes_max,
        page_seconds_max=settings.page_seconds_max,
        ocr_program=(shutil.which(OCR_PROGRAM) or "") if settings.ocr_languages else "",
        ocr_languages=settings.ocr_languages,
    )
