"""Cut a document that has been read into the passages that are stored of it."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from wayline.documents import TextPage
from wayline.retrieval.documents.chunking import Passage, Size, chunk
from wayline.retrieval.documents.document import Chunk

BETWEEN_PAGES = "\n\n"
HEADINGS = "headings"
PAGE = "page"
SPACE_MAX_CHARS = 10_000
"""Of the white space before a passage that is kept."""
HASH_BYTES = 8
"""Of a passage's text in its id: two of a document's 30,000 passages are taken for one in 40 billion documents."""


def cut_passages(document_id: str, pages: Sequence[TextPage], size: Size) -> list[Chunk]:
    """Return a document's passages. Their texts, with the white space before each, are all of its text. Blocking.

    A passage is known by its text, and by how often the same text came before: what a citation names is found under
    the same id as long as the document holds it, however the rest has changed.
    """
    seen: Counter[bytes] = Counter()
    chunks: list[Chunk] = []
    for placed in _placed(pages, size):
        text = placed.passage.text
        digest = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=HASH_BYTES).digest()
        times = seen[digest]
        seen[digest] += 1
        chunk_id = f"{document_id}#{digest.hex()}" + (f".{times}" if times else "")
        above = _headings(placed)
        metadata: dict[str, Any] = {} if placed.page.number is None else {PAGE: placed.page.number}
        if above:
            metadata[HEADINGS] = list(above)
        start = placed.offset + placed.passage.start
        chunks.append(Chunk(text, above, metadata, chunk_id, start, start + len(text), placed.before))
    return chunks


@dataclass(frozen=True, slots=True)
class _Placed:
    passage: Passage
    page: TextPage
    offset: int
    """Of its page in the document's text."""
    before: str
    """The white space between the passage before it and this one."""


def _placed(pages: Sequence[TextPage], size: Size) -> Iterator[_Placed]:
    offset, tail = 0, ""
    for page in pages:
        end = 0
        for passage in chunk(page.text, size=size, markdown=page.markdown, code=page.code):
            before = tail + page.text[end : passage.start]
            yield _Placed(passage, page, offset, before[:SPACE_MAX_CHARS])
            tail, end = "", passage.end
        tail += page.text[end:] + BETWEEN_PAGES
        offset += len(page.text) + len(BETWEEN_PAGES)


def _headings(placed: _Placed) -> tuple[str, ...]:
    page, passage = placed.page, placed.passage
    above = passage.headings if page.title is None else (page.title, *passage.headings)
    # A row says little without the names of its columns.
    return (*above, page.header) if page.header is not None and passage.start > 0 else above
