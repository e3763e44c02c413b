"""Text of charts and diagrams, which Office files keep in parts of their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from wayline.documents.formats.archive import Archive
from wayline.documents.formats.markdown_tables import table_lines

_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_C = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
_D = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"
_R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
CHART, DIAGRAM = f"{_C}chart", f"{_D}relIds"
"""The elements that stand where a chart or a diagram is shown."""
FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
"""What is shown again, for older programs."""
POINTS_MAX = 1_000
"""Of a chart: of more the first are read."""


@dataclass(frozen=True, slots=True)
class Drawings:
    """The charts and diagrams of one part of a file."""

    archive: Archive
    parts: dict[str, str]
    """Where each is kept, by the id that the part gives it."""

    @classmethod
    def of(cls, archive: Archive, part: str) -> Drawings:
        """Return those that a part shows."""
        return cls(archive, archive.related(part))

    def text(self, shown: Any) -> str:
        """Return what a chart or diagram says, from the element that stands for it; empty where its part is missing."""
        is_chart = shown.tag == CHART
        name = self.parts.get(shown.get(f"{_R}id" if is_chart else f"{_R}dm", ""), "")
        root = self.archive.optional_xml(name)
        if root is None:
            return ""
        return _chart(root) if is_chart else "\n".join(f"- {text}" for text in _paragraphs(root.iter(f"{_D}t")))


def _chart(root: Any) -> str:
    """Return a chart's title, and its numbers as tables: series of the same categories, one column each, are one."""
    tables = list[tuple[dict[int, str], list[Any]]]()
    for series in root.iter(f"{_C}ser"):
        categories = _points(series.find(f"{_C}cat"), series.find(f"{_C}xVal"))
        if not tables or tables[-1][0] != categories:
            tables.append((categories, []))
        tables[-1][1].append(series)
    titles = "\n".join(_paragraphs(root.iterfind(f"{_C}chart/{_C}title")))
    return "\n\n".join(filter(None, [titles, *(_table(categories, of_them) for categories, of_them in tables)]))


def _table(categories: dict[int, str], of_them: list[Any]) -> str:
    named = [" ".join(_points(series.find(f"{_C}tx")).values()) for series in of_them]
    values = [_points(series.find(f"{_C}val"), series.find(f"{_C}yVal")) for series in of_them]
    places = sorted({at for points in (categories, *values) for at in points})[:POINTS_MAX]
    rows = [[categories.get(at, ""), *(points.get(at, "") for points in values)] for at in places]
    return "\n".join(table_lines([["", *named], *rows]))


def _points(*sources: Any) -> dict[int, str]:
    """Return the texts of what is stored of a range of cells, by their places; of several levels the innermost."""
    for source in sources:
        if source is None:
            continue
        if (text := source.findtext(f"{_C}v")) is not None:
            return {0: text}
        found = dict[int, str]()
        for point in source.iter(f"{_C}pt"):
            at = point.get("idx", "")
            if at.isdecimal() and len(at) < 9:
                found.setdefault(int(at), point.findtext(f"{_C}v") or "")
        return found
    return {}


def _paragraphs(elements: Any) -> Iterator[str]:
    for element in elements:
        for paragraph in element.iter(f"{_A}p"):
            if text := "".join(node.text or "" for node in paragraph.iter(f"{_A}t")).strip():
                yield text
