"""Text out of EPUB files, chapter by chapter."""

from __future__ import annotations

import posixpath
from typing import Any
from urllib.parse import unquote

from wayline.documents.characters import characters
from wayline.documents.formats.archive import Archive
from wayline.documents.formats.html import all_text
from wayline.documents.readable import PageClock, ReadableDocument, ReadLimits, TextPage

_CONTAINER = "META-INF/container.xml"
_HTML = frozenset({"application/xhtml+xml", "text/html"})


def epub_document(archive: Archive, limits: ReadLimits, clock: PageClock) -> ReadableDocument:
    """Return the chapters of a book in its reading order. Blocking; raises Unreadable."""
    package = next((file.get("full-path", "") for file in archive.xml(_CONTAINER).iter("{*}rootfile")), "content.opf")
    root = archive.xml(package)
    parts = {item.get("id"): item for item in root.iter("{*}item")}
    pages: list[TextPage] = []
    for number, reference in enumerate(root.iter("{*}itemref"), start=1):
        part = parts.get(reference.get("idref"))
        if number > limits.pages_max or part is None or part.get("media-type") not in _HTML:
            continue
        content = archive.optional_part(_path(package, part.get("href", "")))
        if content is not None:
            with clock(number):
                pages.append(TextPage(all_text(characters(content, html=True)), markdown=True))
    return ReadableDocument(pages, _title(root))


def _path(package: str, href: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(package), unquote(href.partition("#")[0])))


def _title(root: Any) -> str:
    found = root.find(".//{http://purl.org/dc/elements/1.1/}title")
    return " ".join((found.text or "").split()) if found is not None else ""
