"""Turn the bytes of a file into text, by its format."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from wayline.documents.characters import characters, is_binary, without_nuls
from wayline.documents.decode_docx import docx_text
from wayline.documents.decode_html import html_page
from wayline.documents.decode_pdf import pdf_pages
from wayline.documents.errors import Unreadable
from wayline.documents.readable import PageClock, ReadableDocument, ReadLimits, TextPage, no_clock

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class FileToRead:
    """The bytes of a file and what its sender says of them."""

    content: bytes
    charset: str = ""
    url: str = ""
    links: bool = True
    """Keep where a page's links lead to."""


_Decode = Callable[[FileToRead, ReadLimits, PageClock], ReadableDocument]


def decode_file(file: FileToRead, kind: str, limits: ReadLimits, clock: PageClock = no_clock) -> ReadableDocument:
    """Return the text of a file. Blocking; raises Unreadable with what its sender can do about it."""
    try:
        found = _DECODE[kind](file, limits, clock)
    except (Unreadable, MemoryError):
        raise
    except Exception as error:  # parsers raise almost anything for a broken document
        raise Unreadable(
            f"The document is damaged and cannot be read ({type(error).__name__}): open it where it was made, and save "
            f"it anew."
        ) from error
    return _bounded(replace(found, pages=[replace(page, text=storable(page.text)) for page in found.pages]), limits)


def storable(text: str) -> str:
    """Return the text without what no database takes: NUL bytes, and halves of surrogate pairs."""
    return _SURROGATE.sub("\ufffd", without_nuls(text)).replace("\r\n", "\n")


def _bounded(found: ReadableDocument, limits: ReadLimits) -> ReadableDocument:
    left = limits.text_max_chars
    pages: list[TextPage] = []
    for page in found.pages:
        if len(page.text) > left and not limits.cut:
            raise Unreadable(f"The document has more than {limits.text_max_chars} characters of text: split it.")
        if left > 0 and page.text.strip():
            pages.append(replace(page, text=page.text[:left]))
        left -= len(page.text)
    return replace(found, pages=pages)


def _text(file: FileToRead, limits: ReadLimits, clock: PageClock) -> ReadableDocument:
    text = characters(file.content, charset=file.charset)
    # What is cut is shown as it is, whatever it holds.
    if is_binary(text) and not limits.cut:
        raise Unreadable("This is binary data, not text: check the file, and send its real media type.")
    return ReadableDocument([TextPage(text)])


def _html(file: FileToRead, limits: ReadLimits, clock: PageClock) -> ReadableDocument:
    page = html_page(file.content, charset=file.charset, url=file.url, links=file.links)
    return ReadableDocument([TextPage(page.markdown, markdown=True)], page.title)


def _pdf(file: FileToRead, limits: ReadLimits, clock: PageClock) -> ReadableDocument:
    texts = pdf_pages(file.content, limits, clock)
    pages = [TextPage(text.strip(), number=number) for number, text in enumerate(texts, start=1)]
    return ReadableDocument(pages, page_count=len(texts))


def _docx(file: FileToRead, limits: ReadLimits, clock: PageClock) -> ReadableDocument:
    text = docx_text(file.content, part_max_bytes=limits.unpacked_max_bytes, cut=limits.cut)
    return ReadableDocument([TextPage(text, markdown=True)])


_DECODE: dict[str, _Decode] = {"text": _text, "html": _html, "pdf": _pdf, "docx": _docx}
