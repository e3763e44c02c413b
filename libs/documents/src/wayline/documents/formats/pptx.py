"""Text out of PPTX files, slide by slide: titles, paragraphs, tables, charts, diagrams, notes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wayline.documents.formats.archive import Archive
from wayline.documents.formats.drawings import CHART, DIAGRAM, FALLBACK, Drawings
from wayline.documents.formats.markdown_tables import table_lines
from wayline.documents.readable import TextPage

_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_MAIN = "ppt/presentation.xml"
_TITLES = frozenset({"title", "ctrTitle"})
_REPEATED = frozenset({"sldNum", "dt", "ftr", "sldImg"})
"""Places for what stands on each slide."""


def pptx_pages(archive: Archive, *, pages_max: int) -> list[TextPage]:
    """Return the text of each slide, in the order in which they are shown. Blocking; raises Unreadable."""
    main = archive.main(_MAIN)
    related = archive.related(main)
    pages: list[TextPage] = []
    for number, shown in enumerate(archive.xml(main).iter(f"{_P}sldId"), start=1):
        if number > pages_max:
            break
        name = related.get(shown.get(f"{_R}id", ""), "")
        slide = archive.optional_xml(name)
        if slide is not None:
            blocks = [*_blocks(slide, Drawings.of(archive, name)), *_notes(archive, name)]
            pages.append(TextPage("\n\n".join(blocks), markdown=True, number=number))
    return pages


def _blocks(root: Any, drawings: Drawings) -> Iterator[str]:
    for again in list(root.iter(FALLBACK)):
        again.getparent().remove(again)
    for shape in root.iter(f"{_P}sp", f"{_A}tbl", CHART, DIAGRAM):
        if shape.tag in (CHART, DIAGRAM):
            if text := drawings.text(shape):
                yield text
            continue
        if shape.tag == f"{_A}tbl":
            yield "\n".join(table_lines([_text(cell) for cell in row.iter(f"{_A}tc")] for row in shape.iter(f"{_A}tr")))
            continue
        place = shape.find(f"{_P}nvSpPr/{_P}nvPr/{_P}ph")
        kind = "" if place is None else place.get("type", "")
        text = _text(shape)
        if text and kind not in _REPEATED:
            yield f"# {' '.join(text.split())}" if kind in _TITLES else text


def _notes(archive: Archive, slide: str) -> Iterator[str]:
    for name in archive.related(slide).values():
        if name.startswith("ppt/notesSlides/") and (root := archive.optional_xml(name)) is not None:
            yield from (f"Notes: {block}" for block in _blocks(root, Drawings.of(archive, name)))


def _text(element: Any) -> str:
    lines: list[str] = []
    for paragraph in element.iter(f"{_A}p"):
        parts = [(node.text or "") if node.tag == f"{_A}t" else "\n" for node in paragraph.iter(f"{_A}t", f"{_A}br")]
        lines.append("".join(parts))
    return "\n".join(lines).strip()
