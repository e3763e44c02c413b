"""Documents as they are indexed, and the table that keeps how far each is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from wayline.contracts.knowledge import AcceptDocument, IndexDocument, Trust
from wayline.retrieval.documents.decode_document import Decoded
from wayline.retrieval.embeddings.live_sets import LiveSet

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage as it is stored: its text, what stands above it, where it is from."""

    text: str
    headings: tuple[str, ...]
    metadata: dict[str, Any]
    chunk_id: str
    start: int
    end: int
    """Where it stands in the document's text, in characters."""
    before: str = ""
    """The white space between the passage before it and this one."""


def embeddable(name: str, piece: Chunk) -> str:
    """Return what stands for a passage in vector space: the text with what says where it stands."""
    return embeddable_text(name, piece.headings, piece.text)


def embeddable_text(name: str, headings: Sequence[str], text: str) -> str:
    """Return the same of a passage's parts."""
    return "\n".join([" > ".join((name, *headings)), text])


@dataclass(frozen=True, slots=True)
class RequestedDocument:
    """A document as one message asks for it; later changes of its row name the sequence of this message."""

    tenant: str
    document_id: str
    name: str
    media_type: str
    size_bytes: int
    metadata: dict[str, Any]
    embedding_model: str
    sequence: int
    set_id: int | None = None
    """The tenant's set of vectors that is searched."""
    trust: Trust = "trusted"
    payloads: tuple[str, ...] = ()
    """The objects on the bus that hold what the message was too large for."""
    indexed_as: str = ""
    """The same where indexing it would store what is stored."""
    collection: str | None = None
    audience: tuple[str, ...] | None = None
    """Who may find it; None: everybody."""
    valid_until: datetime | None = None
    said: tuple[str, ...] = ()
    """What of its description the message names; of the rest, what was changed since stays."""
    kept: bool = False
    """It is what is kept of it that is indexed once more: the message says nothing else."""


def said_of(asked: IndexDocument | AcceptDocument) -> tuple[str, ...]:
    """Return what a message says of a document beside its name; of the rest, what was changed since stays."""
    if isinstance(asked, IndexDocument) and asked.kept:
        return ()
    # The address alone is what the gateway adds.
    own = ("metadata",) if asked.metadata.keys() - {"url"} else ()
    others = ("collection", "audience", "valid_until", "trust")
    return (*own, *(field for field in others if getattr(asked, field) is not None))


class Documents(Protocol):
    """The table of documents, as indexing needs it."""

    async def live_set(self, tenant: str, *, model: str, asked_dimensions: int | None) -> LiveSet: ...

    async def begin(self, requested: RequestedDocument, *, anew: bool = False) -> bool: ...

    async def last_word(self, tenant: str, document_id: str) -> tuple[int, bool]: ...

    async def keep(self, requested: RequestedDocument) -> bool: ...

    async def progress(self, requested: RequestedDocument, *, done: int, total: int) -> None: ...

    async def fail(self, requested: RequestedDocument, error: str) -> None: ...

    async def replace(
        self,
        requested: RequestedDocument,
        decoded: Decoded,
        chunks: Sequence[Chunk],
        vectors: NDArray[Any] | Sequence[NDArray[Any]] | None,
    ) -> bool: ...
