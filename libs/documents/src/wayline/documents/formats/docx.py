"""Text out of DOCX files, as Markdown: headings by style, lists, tables, charts, notes, headers and footers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from wayline.documents.formats.archive import Archive
from wayline.documents.formats.drawings import CHART, DIAGRAM, FALLBACK, Drawings
from wayline.documents.formats.markdown_tables import table_lines

PART_MAX_BYTES = 50 * 1024 * 1024
"""Of the document's parts, unpacked."""
STYLES_DEEP_MAX = 10
"""Styles that one is based on, one after the other."""
HEADING_LEVELS = 6
_MAIN = "word/document.xml"
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_HEADING = re.compile(r"heading ?([1-9])", re.I)
_LEFT_OUT = frozenset({FALLBACK, f"{_W}del", f"{_W}moveFrom", f"{_W}pPr", f"{_W}rPr"})
"""A text box comes in two forms, a change with what it removed."""
_AROUND = frozenset({f"{_W}customXml", f"{_W}ins", f"{_W}moveTo", f"{_W}smartTag"})
"""What may stand around blocks, and says nothing itself."""
_TEXTS = frozenset({f"{_W}t", "{http://schemas.openxmlformats.org/officeDocument/2006/math}t"})
_SIGNS = {f"{_W}tab": "\t", f"{_W}br": "\n", f"{_W}cr": "\n", f"{_W}noBreakHyphen": "-"}


def docx_text(content: bytes, *, unpacked_max_bytes: int = PART_MAX_BYTES, cut: bool = False) -> str:
    """Return the text of a DOCX file. Blocking; raises Unreadable for what is damaged, encrypted or too large.

    With `cut` what is beyond the limit is left out instead.
    """
    archive = Archive(content, unpacked_max_bytes=unpacked_max_bytes, cut=cut)
    main = archive.main(_MAIN)
    body = archive.xml(main).find(f"{_W}body")
    if body is None:
        return ""
    reader = _Reader(_Styles.of(archive), Drawings.of(archive, main))
    blocks = list(reader.blocks(body))
    blocks += reader.notes(archive)
    blocks += _margins(archive, reader)
    return "\n\n".join(blocks)


@dataclass(frozen=True, slots=True)
class _Styles:
    """What the styles of a document mean, whatever language their names are in."""

    levels: dict[str, int]
    lists: frozenset[str]

    @classmethod
    def of(cls, archive: Archive) -> _Styles:
        root = archive.optional_xml("word/styles.xml")
        styles = {} if root is None else {style.get(f"{_W}styleId", ""): style for style in root.iter(f"{_W}style")}
        levels = {name: level for name in styles if (level := _level(styles, name))}
        lists = frozenset(name for name, style in styles.items() if style.find(f"{_W}pPr/{_W}numPr") is not None)
        return cls(levels, lists)

    def level(self, name: str) -> int | None:
        """Return the level of a paragraph's style; None: it is no heading."""
        if name in self.levels:
            return self.levels[name]
        # Without styles.xml the id is all there is.
        named = _HEADING.fullmatch(name)
        return min(int(named[1]), HEADING_LEVELS) if named else 1 if name.lower() == "title" else None


def _level(styles: dict[str, Any], name: str) -> int | None:
    """Return the heading level of a style, by its built-in name or outline level, or by the style it is based on."""
    for _ in range(STYLES_DEEP_MAX):
        style = styles.get(name)
        if style is None:
            return None
        built_in = _value(style.find(f"{_W}name"))
        if found := _HEADING.fullmatch(built_in):
            return min(int(found[1]), HEADING_LEVELS)
        if built_in.lower() == "title":
            return 1
        outline = _value(style.find(f"{_W}pPr/{_W}outlineLvl"))
        if outline.isdigit() and int(outline) < HEADING_LEVELS:
            return int(outline) + 1
        name = _value(style.find(f"{_W}basedOn"))
    return None


@dataclass(slots=True)
class _Reader:
    """Reads paragraphs and tables, and keeps which notes they name."""

    styles: _Styles
    drawings: Drawings
    named: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Kind and id of the notes, in the order in which the text names them."""

    def blocks(self, parent: Any) -> Iterator[str]:
        """Yield paragraphs and tables as Markdown."""
        for element in parent:
            if element.tag == f"{_W}p":
                yield from self._paragraph(element)
            elif element.tag == f"{_W}tbl":
                if lines := table_lines(self._rows(element)):
                    yield "\n".join(lines)
            elif element.tag == f"{_W}sdt" and (inner := element.find(f"{_W}sdtContent")) is not None:
                yield from self.blocks(inner)
            elif element.tag in _AROUND:
                yield from self.blocks(element)

    def _paragraph(self, element: Any) -> Iterator[str]:
        boxes: list[Any] = []
        text = self._text(element, boxes).strip()
        if text:
            properties = element.find(f"{_W}pPr")
            yield text if properties is None else self._styled(text, properties)
        for box in boxes:
            if box.tag not in (CHART, DIAGRAM):
                yield from self.blocks(box)
            elif text := self.drawings.text(box):
                yield text

    def _styled(self, text: str, properties: Any) -> str:
        style = _value(properties.find(f"{_W}pStyle"))
        outline = _value(properties.find(f"{_W}outlineLvl"))
        level = int(outline) + 1 if outline.isdigit() and int(outline) < HEADING_LEVELS else self.styles.level(style)
        if level:
            return f"{'#' * level} {' '.join(text.split())}"
        in_list = properties.find(f"{_W}numPr") is not None or style in self.styles.lists
        return f"- {text}" if in_list else text

    def _rows(self, table: Any) -> Iterator[list[str]]:
        for row in _children(table, "tr"):
            yield [self._text(cell, None).strip() for cell in _children(row, "tc")]

    def _text(self, element: Any, boxes: list[Any] | None) -> str:
        """Return the text of an element; text boxes, charts and diagrams in it go to `boxes`, to be read after it."""
        parts: list[str] = []
        waiting: list[Any] = [element]
        while waiting:
            node = waiting.pop()
            tag = node.tag
            if tag in _TEXTS:
                parts.append(node.text or "")
            elif tag in _SIGNS:
                parts.append(_SIGNS[tag])
            elif tag in (f"{_W}footnoteReference", f"{_W}endnoteReference", f"{_W}commentReference"):
                parts.append(self._mark(tag.removeprefix(_W).removesuffix("Reference"), node.get(f"{_W}id", "")))
            elif tag in (f"{_W}txbxContent", CHART, DIAGRAM) and boxes is not None:
                boxes.append(node)
            elif tag not in _LEFT_OUT:
                if tag == f"{_W}p" and node is not element:
                    parts.append("\n")
                waiting.extend(reversed(node))
        return "".join(parts)

    def _mark(self, kind: str, note: str) -> str:
        if (kind, note) not in self.named:
            self.named.append((kind, note))
        return f"[^{self.named.index((kind, note)) + 1}]"

    def notes(self, archive: Archive) -> Iterator[str]:
        """Yield the footnotes, endnotes and comments that the text names."""
        texts: dict[tuple[str, str], str] = {}
        for kind in ("footnote", "endnote", "comment"):
            root = archive.optional_xml(f"word/{kind}s.xml")
            for note in () if root is None else root.iter(f"{_W}{kind}"):
                author = f"{name}: " if (name := note.get(f"{_W}author")) else ""
                texts[kind, note.get(f"{_W}id", "")] = author + " ".join(self._text(note, None).split())
        for number, key in enumerate(list(self.named), start=1):
            if texts.get(key):
                yield f"[^{number}]: {texts[key]}"


def _margins(archive: Archive, reader: _Reader) -> Iterator[str]:
    """Yield what stands at the top and the bottom of pages, each once."""
    seen: set[str] = set()
    for name in (*archive.names("word/header"), *archive.names("word/footer")):
        root = archive.optional_xml(name)
        text = "" if root is None else "\n".join(replace(reader, drawings=Drawings.of(archive, name)).blocks(root))
        if text and text not in seen:
            seen.add(text)
            yield text


def _value(element: Any) -> str:
    return "" if element is None else element.get(f"{_W}val", "")


def _children(parent: Any, name: str) -> Iterator[Any]:
    """Yield a table's rows or a row's cells, none of a table inside: its text is its cell's."""
    for element in parent:
        if element.tag == f"{_W}{name}":
            yield element
        elif element.tag == f"{_W}sdt" and (inner := element.find(f"{_W}sdtContent")) is not None:
            yield from _children(inner, name)
