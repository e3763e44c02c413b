"""What a document is once it is read, and how much reading it may take."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

MEGABYTE = 1024 * 1024
HELLO = b"ready"
"""A reader process's first word."""
LENGTH_BYTES = 4
"""Before each message between a reader process and its owner."""

PageClock = Callable[[int], AbstractContextManager[object]]
"""Bounds the time that the page of this number may take, while what it returns is open."""


class PageTimeout(BaseException):
    """A page took longer than it may. Not an Exception: parsers go on after those."""


def no_clock(_: int) -> AbstractContextManager[object]:
    """Leave a page all the time that its document has."""
    return nullcontext()


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """How much a document may hold, and how long reading it may take."""

    pages_max: int = 5_000
    page_s: float = 20.0
    document_s: float = 120.0
    unpacked_max_bytes: int = 50 * MEGABYTE
    """Of what is packed inside a document, such as its XML: a small file can hold any amount."""
    text_max_chars: int = 32 * MEGABYTE
    cut: bool = False
    """Leave out what is beyond a limit, instead of refusing the document."""
    ocr_program: str = ""
    """What reads scanned pages of a PDF, with its path; empty: nothing does."""
    ocr_languages: str = ""
    """As the program names them, such as `eng+deu`."""
    pages_advice: str = "split it"
    """What the sender of a document with too many pages can do."""


@dataclass(frozen=True, slots=True)
class TextPage:
    """A stretch of readable text. Most documents are one; pages and slides are one each, with their numbers."""

    text: str
    markdown: bool = False
    number: int | None = None
    header: str | None = None
    """Of a table: the line that names its columns."""
    title: str | None = None
    """What stands above all of it, such as the name of a sheet."""
    code: bool = False


@dataclass(frozen=True, slots=True)
class ReadableDocument:
    """The text of a document."""

    pages: list[TextPage] = field(default_factory=list[TextPage])
    title: str = ""
    page_count: int | None = None
    """Of a document that has pages, also those without text."""

    @property
    def text(self) -> str:
        """Return all of it."""
        return "\n\n".join(page.text for page in self.pages)
