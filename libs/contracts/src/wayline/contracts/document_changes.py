"""What is done with a document that is there: described anew, and shown passage by passage."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import ConfigDict, Field

from wayline.contracts.base import Frozen, Request
from wayline.contracts.knowledge import SEEN_BY, Audience, CollectionName, Document, DocumentId, Trust


class DocumentChange(Frozen):
    """What describes a document and is changed without indexing it again; what is not set stays."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str | None = Field(default=None, min_length=1, max_length=500, description="Never null.")
    metadata: dict[str, Any] | None = Field(default=None, description="In place of all that it has; null: none.")
    collection: CollectionName | None = None
    audience: Audience | None = Field(
        default=None, description="Who may find it (user ids, groups); null: everybody, empty: nobody."
    )
    valid_until: datetime | None = Field(default=None, description="From then on no search finds it; null: always.")
    trust: Trust | None = Field(default=None, description="Never null.")


class ChangeDocument(Request, subject="documents.change.{tenant}", replies=Document):
    """Change what describes a document; searches, lists and jobs see it at once."""

    terse = True

    document_id: DocumentId
    change: DocumentChange
    seen_by: Audience | None = SEEN_BY


class DocumentChunk(Frozen):
    """A passage of a document as it is stored."""

    chunk_id: str
    position: int
    text: str
    headings: tuple[str, ...] = ()
    page: int | None = Field(default=None, description="Of a PDF, from 1.")
    start: int | None = Field(default=None, description="Where it begins in the document's text, in characters.")
    end: int | None = None
    language: str | None = Field(
        default=None, description="The language by which its words are stemmed, such as `german`; null: by none."
    )
    embedded: bool = Field(default=False, description="Whether searches by meaning find it.")


class ChunkPage(Frozen):
    """Some of a document's passages, in their order."""

    chunks: tuple[DocumentChunk, ...]
    next_position: int | None = Field(default=None, description="Of the passage that comes next; null: there is none.")


CHUNKS_MAX = 500
"""Passages in one page; one of very long passages has fewer."""


class ListChunks(Request, subject="documents.chunks.{tenant}", replies=ChunkPage):
    """Page through a document's passages."""

    document_id: DocumentId
    position: int = Field(default=0, ge=0, description="Of the first passage that is wanted.")
    limit: int = Field(default=100, ge=1, le=CHUNKS_MAX)
    seen_by: Audience | None = SEEN_BY
