"""Turn the bytes of a file into text, by its format."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from wayline.documents.characters import characters, is_binary, without_nuls
from wayline.documents.errors import Unreadable
from wayline.documents.formats.archive import Archive
from wayline.documents.formats.docx import docx_text
from wayline.documents.formats.epub import epub_document
from wayline.documents.formats.html import html_page
from wayline.documents.formats.mail import mail_document
from wayline.documents.formats.opendocument import opendocument_pages
from wayline.documents.formats.pdf import pdf_pages
from wayline.documents.formats.pptx import pptx_pages
from wayline.documents.formats.spreadsheet import spreadsheet_pages
from wayline.documents.formats.text_formats import json_page, notebook_page, rtf_page, subtitles_page
from wayline.documents.readable import PageClock, PageTimeout, ReadableDocument, ReadLimits, TextPage, no_clock

_SURROGATE = re.compile("[\ud800-\udfff]")
_LINE_END = re.compile("\r+\n?")


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
    except PageTimeout:
        raise Unreadable(f"Reading a part of the document took longer than {limits.page_s:g} s: split it.") from None
    except Exception as error:  # parsers raise almost anything for a broken document
        raise Unreadable(
            f"The document is damaged and cannot be read ({type(error).__name__}): open it where it was made, and save "
            f"it anew."
        ) from error
    return _bounded(replace(found, pages=[replace(page, text=storable(page.text)) for page in found.pages]), limits)


def storable(text: str) -> str:
    """Return the text without what no database takes: NUL bytes, and halves of surrogate pairs; its lines end alike."""
    text = _SURROGATE.sub("\ufffd", without_nuls(text))
    return _LINE_END.sub(_line_ends, text) if "\r" in text else text


def _line_ends(found: re.Match[str]) -> str:
    """Return one line end for carriage returns before one, else one for each of them."""
    return "\n" if found[0].endswith("\n") else "\n" * len(found[0])


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
    return ReadableDocument([TextPage(_characters(file, limits))])


def _characters(file: FileToRead, limits: ReadLimits) -> str:
    text = characters(file.content, charset=file.charset)
    # What is cut is shown as it is, whatever it holds.
    if is_binary(text) and not limits.cut:
        raise Unreadable("This is binary data, not text: check the file, and send its real media type.")
    return without_nuls(text)


def _html(file: FileToRead, limits: ReadLimits, clock: PageClock) -> ReadableDocument:
    page = html_page(file.content, charset=file.charset, url=file.url, links=file.links)
    return ReadableDocument([TextPage(page.markdown, markdown=True)], page.title)


def _pdf(file: FileToRead, limits: ReadLimits, clock: PageClock) -> ReadableDocument:
    texts = pdf_pages(file.content, limits, clock)
    pages = [TextPage(text.strip(), number=number) for number, text in enumerate(texts, start=1)]
    return ReadableDocument(pages, page_count=len(texts))


def _docx(file: FileToRead, limits: ReadLimits, clock: PageClock) -> ReadableDocument:
    text = docx_text(file.content, unpacked_max_bytes=limits.unpacked_max_bytes, cut=limits.cut)
    return ReadableDocument([TextPage(text, markdown=True)])


def _pptx(file: FileToRead, limits: ReadLimits, clock: PageClock) -> ReadableDocument:
    pages = pptx_pages(_archive(file, limits), pages_max=limits.pages_max)
    return ReadableDocument(pages, page_count=len(pages))


def _opendocument(file: FileToRead, limits: ReadLimits, clock: PageClock) -> ReadableDocument:
    return ReadableDocument(opendocument_pages(_archive(file, limits), pages_max=limits.pages_max))


def _spreadsheet(file: FileToRead, limits: ReadLimits, clock: PageClock) -> ReadableDocument:
    return ReadableDocument(spreadsheet_pages(file.content, limits))


def _epub(file: FileToRead, limits: ReadLimits, clock: PageClock) -> ReadableDocument:
    return epub_document(_archive(file, limits), limits, clock)


def _mail(file: FileToRead, limits: ReadLimits, clock: PageClock) -> ReadableDocument:
    return mail_document(file.content)


def _archive(file: FileToRead, limits: ReadLimits) -> Archive:
    return Archive(file.content, unpacked_max_bytes=limits.unpacked_max_bytes, cut=limits.cut)


def _by_text(read: Callable[[str], TextPage]) -> _Decode:
    def decode(file: FileToRead, limits: ReadLimits, clock: PageClock) -> ReadableDocument:
        return ReadableDocument([read(_characters(file, limits))])

    return decode


_DECODE: dict[str, _Decode] = {
    "text": _text,
    "html": _html,
    "pdf": _pdf,
    "docx": _docx,
    "pptx": _pptx,
    "opendocument": _opendocument,
    "spreadsheet": _spreadsheet,
    "epub": _epub,
    "mail": _mail,
    "notebook": _by_text(notebook_page),
    "subtitles": _by_text(subtitles_page),
    "json": _by_text(json_page),
    "rtf": _by_text(rtf_page),
}
