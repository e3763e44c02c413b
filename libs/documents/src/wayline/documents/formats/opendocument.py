"""Text out of ODT and ODP files, as Markdown: headings, paragraphs, lists, tables, notes, slides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from wayline.documents.formats.archive import Archive
from wayline.documents.formats.markdown_tables import table_lines
from wayline.documents.readable import TextPage

_NS = "urn:oasis:names:tc:opendocument:xmlns:"
_TEXT, _TABLE, _OFFICE = f"{{{_NS}text:1.0}}", f"{{{_NS}table:1.0}}", f"{{{_NS}office:1.0}}"
_DRAW, _PRESENTATION = f"{{{_NS}drawing:1.0}}", f"{{{_NS}presentation:1.0}}"
HEADING_LEVELS = 6
SPACES_MAX = 100
"""One element can stand for any number of spaces."""
_SIGNS = {f"{_TEXT}tab": "\t", f"{_TEXT}line-break": "\n"}
_LEFT_OUT = frozenset({f"{_TEXT}tracked-changes", f"{_OFFICE}annotation-end"})


def opendocument_pages(archive: Archive, *, pages_max: int) -> list[TextPage]:
    """Return the text of a document, or of each slide of a presentation. Blocking; raises Unreadable."""
    body = archive.xml("content.xml").find(f"{_OFFICE}body")
    pages: list[TextPage] = []
    for content in () if body is None else body:
        slides = list(content.iter(f"{_DRAW}page"))[:pages_max]
        for number, part in enumerate(slides or [content], start=1):
            reader = _Reader()
            blocks = [*reader.blocks(part)]
            blocks += [f"[^{number}]: {note}" for number, note in enumerate(reader.notes, start=1)]
            pages.append(TextPage("\n\n".join(blocks), markdown=True, number=number if slides else None))
    return pages


@dataclass(slots=True)
class _Reader:
    notes: list[str] = field(default_factory=list[str])

    def blocks(self, parent: Any) -> Iterator[str]:
        """Yield headings, paragraphs, items and tables."""
        for element in parent:
            tag = element.tag
            if tag == f"{_TEXT}h":
                level = element.get(f"{_TEXT}outline-level", "1")
                title = " ".join(self._text(element).split())
                if title:
                    yield f"{'#' * min(int(level) if level.isdigit() else 1, HEADING_LEVELS)} {title}"
            elif tag == f"{_TEXT}p":
                if text := self._text(element).strip():
                    yield text
                for box in element.iter(f"{_DRAW}text-box"):
                    yield from self.blocks(box)
            elif tag == f"{_TEXT}list-item":
                text = "\n".join(self.blocks(element))
                yield text if text.startswith("- ") else f"- {text}"
            elif tag == f"{_TABLE}table":
                if lines := table_lines(self._rows(element)):
                    yield "\n".join(lines)
            elif tag == f"{_PRESENTATION}notes":
                yield from (f"Notes: {block}" for block in self.blocks(element))
            elif tag not in _LEFT_OUT and isinstance(tag, str):
                yield from self.blocks(element)

    def _rows(self, table: Any) -> Iterator[list[str]]:
        for row in table.iter(f"{_TABLE}table-row"):
            yield [
                "\n".join(self._text(paragraph) for paragraph in cell.iter(f"{_TEXT}p", f"{_TEXT}h"))
                for cell in row.iterchildren(f"{_TABLE}table-cell", f"{_TABLE}covered-table-cell")
            ]

    def _text(self, element: Any) -> str:
        """Return the text of an element; notes in it are kept apart."""
        parts: list[str] = [element.text or ""]
        for node in element:
            tag = node.tag
            if tag in (f"{_TEXT}note", f"{_OFFICE}annotation"):
                body = node.find(f"{_TEXT}note-body") if tag == f"{_TEXT}note" else node
                said = [] if body is None else [self._text(one) for one in body.iter(f"{_TEXT}p")]
                self.notes.append(" ".join(" ".join(said).split()))
                parts.append(f"[^{len(self.notes)}]")
            elif tag == f"{_TEXT}s":
                count = node.get(f"{_TEXT}c", "1")
                parts.append(" " * min(int(count) if count.isdigit() else 1, SPACES_MAX))
            elif tag in _SIGNS:
                parts.append(_SIGNS[tag])
            elif tag != f"{_DRAW}frame" and isinstance(tag, str):
                parts.append(self._text(node))
            parts.append(node.tail or "")
        return "".join(parts)
