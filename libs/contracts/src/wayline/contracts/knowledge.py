"""Documents in, passages out."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, StringConstraints

from wayline.contracts.base import Frozen, Message, Request, Usd
from wayline.contracts.chat import Attachment, Sha256

DOCUMENT_ID_PATTERN = r"^[^\x00-\x1f\x7f]{1,200}$"
DocumentId = Annotated[str, StringConstraints(pattern=DOCUMENT_ID_PATTERN)]


URL_MAX_CHARS = 2_000

Trust = Literal["trusted", "untrusted"]
"""Whether a document holds the words of strangers (`untrusted`): they taint the jobs that read them, and are framed."""
_ORIGINS = ("url", "source_url", "source", "uri", "link")
"""Names in a document's metadata under which its address usually stands."""
_ADDRESSES = ("http://", "https://")
_MAIL, _MAIL_TYPE = ".eml", "message/rfc822"


def trust_by_origin(name: str, metadata: Mapping[str, Any], *, media_type: str) -> Trust:
    """Return how far a document is trusted whose sender did not say: one that is from an address is not, nor a mail.

    `media_type`: as its sender says it.
    """
    told = (name, *(metadata.get(key) for key in _ORIGINS))
    fetched = any(isinstance(one, str) and one.strip().lower().startswith(_ADDRESSES) for one in told)
    stated = media_type.partition(";")[0].strip().lower()
    mail = stated == _MAIL_TYPE or name.strip().lower().endswith(_MAIL)
    return "untrusted" if fetched or mail else "trusted"


CONDITIONS_MAX = 16
"""Keys of a filter, and values that one of them may have."""
AUDIENCE_MAX = 100
"""Names in a document's audience, and names on whose behalf a search is made."""
Scalar = str | int | float | bool | None
AudienceName = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]{1,200}$")]
Audience = Annotated[tuple[AudienceName, ...], Field(max_length=AUDIENCE_MAX)]
CollectionName = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]{1,200}$")]
SEEN_BY: Any = Field(
    default=None,
    description="On whose behalf (user ids, groups): a document with an audience is there for its names alone. null: "
    "for an application, which sees every document.",
)


class DocumentStatus(StrEnum):
    """How far a document's ingestion is."""

    QUEUED = "queued"
    INDEXING = "indexing"
    READY = "ready"
    FAILED = "failed"


class Document(Frozen):
    """A document and how far its ingestion is."""

    document_id: str
    name: str
    status: DocumentStatus = DocumentStatus.QUEUED
    media_type: str = "text/plain"
    chunks_done: int = 0
    chunks_total: int | None = Field(default=None, description="None until the text has been read.")
    size_bytes: int = 0
    error: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    embedding_model: str | None = None
    created_at: datetime | None = None
    sha256: str | None = Field(default=None, description="Of the bytes that are kept of it, for jobs to be given.")
    width: int | None = Field(default=None, description="Of an image, in pixels.")
    height: int | None = None
    pages: int | None = Field(default=None, description="Of a PDF.")
    trust: Trust = Field(default="trusted", description="Whether it holds the words of strangers.")
    collection: str | None = None
    audience: tuple[str, ...] | None = Field(default=None, description="Who may find it; null: everybody.")
    valid_until: datetime | None = None
    language: str | None = Field(
        default=None, description="ISO 639-1, as detected in its text; None: it cannot be told."
    )
    unchanged: bool = Field(
        default=False, description="It was sent again as it was, so that nothing of it was indexed again."
    )
    chunks_embedded: int | None = Field(
        default=None, description="Chunks that searches by meaning find by now; the others are found by their words."
    )
    embedding_error: str | None = Field(default=None, description="Why the others wait.")
    near_duplicate_of: str | None = Field(
        default=None, description="Another document of nearly the same text, as it was when this one was indexed."
    )
    near_duplicate_share: float | None = Field(
        default=None, description="About how much of their groups of words the two have in common, from .8 to 1."
    )


class DocumentPage(Frozen):
    """Some of a tenant's documents, newest first; `next_cursor` asks for more."""

    documents: tuple[Document, ...]
    next_cursor: str | None = None


class IndexDocument(Message, subject="documents.index.{tenant}"):
    """Read, chunk, embed and store a document; the same id again replaces it."""

    is_upload = True

    document_id: DocumentId
    name: str = Field(min_length=1, max_length=500)
    media_type: str = "text/plain"
    text: str | None = None
    content_base64: str | None = Field(default=None, description="The bytes of a file, where it is not text.")
    url: str | None = Field(
        default=None,
        max_length=URL_MAX_CHARS,
        description="Where it is fetched from, when neither text nor bytes are sent; then it is untrusted, unless "
        "`trust` says otherwise.",
    )
    metadata: dict[str, Any] = Field(default_factory=dict)
    trust: Trust | None = Field(
        default=None, description="None: a document from an address (its name, or `url` in its metadata) is untrusted."
    )
    collection: CollectionName | None = None
    audience: Audience | None = Field(
        default=None, description="Who may find it (user ids, groups); null: everybody, empty: nobody."
    )
    valid_until: datetime | None = Field(default=None, description="From then on no search finds it.")
    user_id: str | None = Field(default=None, max_length=200, description="Who sent it: forgotten with this user.")
    kept: bool = Field(
        default=False,
        description="Index what is kept of it once more, as it is described now; nothing else of this message counts.",
    )


class AcceptDocument(Request, subject="documents.accept.{tenant}", replies=Document):
    """Note that a document is queued, so that it can be asked for before its turn; never undoes progress."""

    is_upload = True

    document_id: DocumentId
    name: str
    media_type: str = "text/plain"
    size_bytes: int = 0
    sequence: int | None = Field(
        default=None,
        description="Of the IndexDocument in its stream, from its PubAck: says that this is a newer version.",
    )
    metadata: dict[str, Any] = Field(default_factory=dict)
    trust: Trust | None = Field(
        default=None, description="None: a document from an address (its name, or `url` in its metadata) is untrusted."
    )
    collection: CollectionName | None = None
    audience: Audience | None = Field(default=None, description="Who may find it, as the IndexDocument says.")
    valid_until: datetime | None = None
    kept: bool = Field(default=False, description="It is indexed once more from what is kept of it.")
    user_id: str | None = Field(default=None, max_length=200, description="Who sent it: forgotten with this user.")


class UploadReserved(Frozen):
    """Whether an object may be stored; where it may, its bytes are counted."""

    full: str | None = Field(
        default=None, description="Why it may not be stored for now, and what helps; null: it is counted."
    )


class ReserveUpload(Request, subject="documents.reserve.{tenant}", replies=UploadReserved):
    """Count the bytes of an object in the tenant's share of the object store of uploads, before it is stored there."""

    name: str = Field(min_length=1, description="Of the object; the same name is counted once.")
    size_bytes: int = Field(ge=0)


class GetDocument(Request, subject="documents.get.{tenant}", replies=Document):
    """Ask for one document and how far its ingestion is."""

    document_id: DocumentId
    seen_by: Audience | None = SEEN_BY


class ListDocuments(Request, subject="documents.list.{tenant}", replies=DocumentPage):
    """Page through a tenant's documents, newest first."""

    limit: int = Field(default=50, ge=1, le=500)
    cursor: str | None = None
    name: str | None = Field(default=None, description="Only documents of this name; `*` stands for anything.")
    status: DocumentStatus | None = Field(default=None, description="Only documents that are so far.")
    collection: CollectionName | None = Field(default=None, description="Only documents of this collection.")
    language: Annotated[str, StringConstraints(pattern=r"^[a-z]{2}$")] | None = Field(
        default=None, description="Only documents in this language, as ISO 639-1 names it."
    )
    seen_by: Audience | None = SEEN_BY


class DocumentDeleted(Frozen):
    """What was deleted with a document."""

    document_id: str
    chunks_deleted: int


class DeleteDocument(Request, subject="documents.delete.{tenant}", replies=DocumentDeleted):
    """Delete a document with its passages and the bytes that are kept of it."""

    document_id: DocumentId
    seen_by: Audience | None = SEEN_BY


class DocumentText(Frozen):
    """Some of a document's text."""

    text: str = Field(description="A slice of what was read of the document.")
    next_position: int | None = Field(default=None, description="Of the passage that comes next; null: there is none.")


class ReadDocument(Request, subject="documents.text.{tenant}", replies=DocumentText):
    """Ask for a piece of a document's text, as it was read for searching."""

    document_id: DocumentId
    position: int = Field(default=0, ge=0, description="Of the first passage that is wanted.")
    audience: Audience | None = Field(default=None, description="On whose behalf, as in a search.")


class AttachmentList(Frozen):
    """What is kept of some documents, and of which nothing is."""

    attachments: tuple[Attachment, ...] = ()
    waiting: tuple[str, ...] = Field(default=(), description="Ids of documents that are still being read.")
    refused: dict[str, str] = Field(
        default_factory=dict, description="Why nothing is kept of a document that is there, by its id."
    )


class DescribeAttachments(Request, subject="documents.describe.{tenant}", replies=AttachmentList):
    """Ask what documents are, so that a job can be given them; ids that are in no part of the answer are unknown."""

    document_ids: tuple[str, ...] = Field(max_length=1_000)
    seen_by: Audience | None = SEEN_BY


PIECE_MAX_BYTES = 180_000
"""Of a document at once: in base64 it fits a message, so that none of it is left behind in the object store."""


class AttachmentPiece(Frozen):
    """Some of a document's bytes."""

    content_base64: str
    size_bytes: int = Field(description="Of the whole document.")


class ReadAttachment(Request, subject="documents.read.{tenant}", replies=AttachmentPiece):
    """Ask for a piece of a document's bytes, or of the text that a model is given; other ones are refused."""

    document_id: str
    sha256: Sha256
    offset: int = Field(default=0, ge=0)
    length: int = Field(default=PIECE_MAX_BYTES, ge=0, le=PIECE_MAX_BYTES)
    seen_by: Audience | None = SEEN_BY


EMBEDDED_AT_ONCE_MAX = 16
"""Texts of one request whose answer, with vectors of 4,096 numbers each, still fits one message."""
EMBEDDED_MAX = 512
"""Texts of one request at most; a large answer goes by way of the store of large replies."""


class Condition(Frozen):
    """What a value in a document's metadata must be; all that is set must hold. A list is what any of its values is."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    equals: Scalar = None
    any_of: tuple[Scalar, ...] | None = Field(default=None, alias="in", max_length=CONDITIONS_MAX)
    gt: int | float | str | None = Field(default=None, description="Numbers are compared with numbers, text with text.")
    gte: int | float | str | None = None
    lt: int | float | str | None = None
    lte: int | float | str | None = None
    exists: bool | None = None

    def asked(self) -> dict[str, Any]:
        """Return what is asked, by its name in JSON."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


class Filter(Frozen):
    """Which chunks may be found at all."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    document_ids: tuple[str, ...] | None = Field(
        default=None, description="Only in these documents; null: in all, empty: in none."
    )
    metadata: dict[str, Any] = Field(default_factory=dict, description="Every pair must be equal in the chunk.")
    where: dict[str, Condition] = Field(
        default_factory=dict,
        max_length=CONDITIONS_MAX,
        description="What must hold of the document's metadata, by key.",
    )
    collections: tuple[CollectionName, ...] | None = Field(
        default=None, max_length=CONDITIONS_MAX, description="Only documents of these; null: of any, empty: of none."
    )


QUERY_MAX_CHARS = 100_000
"""What is read of a query; the words in it that weigh most are searched for."""


def _beginning(query: Any) -> Any:
    """Return what is read of a query. A longer one is not refused."""
    return query[:QUERY_MAX_CHARS] if isinstance(query, str) else query


QueryText = Annotated[str, BeforeValidator(_beginning), Field(min_length=1, max_length=QUERY_MAX_CHARS)]

COVERED = "covered"
"""In `Hit.why`: the share of the query's words, weighed by how rare they are, that the passage holds."""

DUPLICATES = "duplicates"
"""In `Hit.why`: passages of nearly the same text that the hit stands for."""

JOINED = "joined"
"""In `Hit.why`: the passages whose texts side by side are the hit's, in order."""


class Hit(Frozen):
    """A passage and why it was found."""

    chunk_id: str
    document_id: str
    document: str = Field(description="The document's name.")
    collection: str | None = None
    text: str
    score: float = Field(
        description="From 0 to 1 in every mode: the share of the most that the query's words could weigh in a passage, "
        "the cosine, or in hybrid both by the leg's weights."
    )
    why: dict[str, Any] = Field(
        default_factory=dict,
        description="Rank and raw score of each leg (BM25, cosine), how much is covered, `duplicates`: passages of "
        "nearly the same text that this one stands for, and `joined`: the passages that it is made of, in order.",
    )
    metadata: dict[str, Any] = Field(default_factory=dict)
    untrusted: bool = Field(default=False, description="Its document holds the words of strangers.")
    start: int | None = Field(
        default=None,
        description="Where it begins in its document's text, in characters; None: it was stored before that was kept.",
    )
    end: int | None = Field(default=None, description="Where it ends there.")


class Degraded(Frozen):
    """A part of a search that could not answer and was left out."""

    leg: Literal["vectors", "words", "rerank"] = "vectors"
    reason: Literal["provider", "slow", "model", "building"] = Field(
        description="The provider is away or refuses, or did not answer in time; or passages have no vectors, or not "
        "all of them yet, that can be compared with the query's."
    )
    detail: str = Field(description="In words, for people.")


class SearchResult(Frozen):
    """The passages that were found, best first."""

    hits: tuple[Hit, ...]
    mode: str
    embedding_model: str | None = None
    note: str | None = Field(default=None, description="Why there are fewer or no hits, where that is not plain.")
    degraded: tuple[Degraded, ...] = Field(
        default=(), description="What was left out because it could not answer; the hits are of the rest."
    )
    corrected: dict[str, tuple[str, ...]] = Field(
        default_factory=dict, description="Words that no passage has, and those one letter away that were looked for."
    )
    cost_usd: Usd | None = Field(
        default=None,
        description="What embedding the query cost, where its caller reports that; None: nothing is known.",
    )


class SearchKnowledge(Request, subject="retrieval.search.{tenant}", replies=SearchResult):
    """Find the best passages for a query by words, by vector, or by both."""

    terse = True

    query: QueryText = Field(description="Of any length: of a long one the words that weigh most count.")
    mode: Literal["hybrid", "keyword", "vector"] = "hybrid"
    top_k: int = Field(default=10, ge=1, le=200)
    vector_weight: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="The vector leg's share in hybrid: 0 is words alone. None: what the embedding model is worth, 0.5 "
        "for one that understands meaning, less for the lexical one.",
    )
    min_score: float | None = Field(default=None, description="Of a hit, from 0 to 1.")
    syntax: Literal["web", "plain"] = Field(
        default="web",
        description='`web`: "an exact phrase", -not, begin*; in queries of up to eight words. `plain`: words alone.',
    )
    fold_duplicates: bool = Field(default=True, description="Show one of several passages of nearly the same text.")
    join_neighbours: bool = Field(
        default=False,
        description="Make one hit of found passages that stand side by side in a document, at most 8 of them: the best "
        "one's id and score, their text in order. `top_k` counts passages all the same.",
    )
    audience: Audience | None = Field(
        default=None,
        description="On whose behalf (user ids, groups): a document with an audience is found by its names alone.",
    )
    filter: Filter = Filter()
    caller_pays: bool = Field(
        default=False,
        description="The caller reports what it costs, as a job's log does. Else it is spent outside of any job.",
    )


class EmbeddedTexts(Frozen):
    """The vectors of texts."""

    model: str | None = Field(
        default=None, description="None: this installation's embedder compares words alone, and there are no vectors."
    )
    vectors: tuple[str, ...] = Field(
        default=(), description="In the order of the texts: base64 of little-endian 32-bit floats, of length 1."
    )


class EmbedTexts(Request, subject="retrieval.embed.{tenant}", replies=EmbeddedTexts):
    """Turn texts into vectors with the installation's embedder; what it costs is the tenant's, outside of any job."""

    terse = True

    texts: tuple[Annotated[str, Field(min_length=1, max_length=10_000)], ...] = Field(
        min_length=1, max_length=EMBEDDED_MAX
    )
    holds: bool = Field(
        default=False, description="Embed only what every hard budget has room for, as documents are. Else as queries."
    )
