"""Text out of DOCX files, as Markdown: headings, paragraphs, lists, tables."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from typing import Any

from wayline.documents.errors import Unreadable

PART_MAX_BYTES = 50 * 1024 * 1024
"""Of the document's XML, unpacked."""
_MAIN = "word/document.xml"
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_HEADING = re.compile(r"heading ?([1-6])|title", re.I)


def docx_text(content: bytes, *, part_max_bytes: int = PART_MAX_BYTES, cut: bool = False) -> str:
    """Return the text of a DOCX file. Blocking; raises Unreadable for what is damaged, encrypted or too large.

    With `cut` what is beyond the limit is left out instead.
    """
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue] - it has no types

    try:
        xml, is_cut = _main_part(content, part_max_bytes, cut=cut)
        parser = etree.XMLParser(
            resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, recover=is_cut
        )
        root = etree.fromstring(xml, parser)
    except (zipfile.BadZipFile, KeyError, NotImplementedError, RuntimeError, EOFError, OSError, ValueError) as error:
        raise Unreadable(f"The DOCX is damaged or encrypted ({type(error).__name__}): save it anew.") from error
    except etree.XMLSyntaxError as error:
        raise Unreadable("The DOCX is damaged: save it anew.") from error
    body = root.find(f"{_W}body") if root is not None else None
    return "\n\n".join(_blocks(body)) if body is not None else ""


def _main_part(content: bytes, max_bytes: int, *, cut: bool) -> tuple[bytes, bool]:
    """Return the document's XML, and whether it is cut."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive, archive.open(_MAIN) as part:
        # Read with a limit: the size that a zip file states may be a lie.
        xml = part.read(max_bytes + 1)
    if len(xml) > max_bytes and not cut:
        raise Unreadable(f"The DOCX is larger than {max_bytes} bytes unpacked: split it.")
    return xml[:max_bytes], len(xml) > max_bytes


def _blocks(parent: Any) -> Iterator[str]:
    for element in parent:
        if element.tag == f"{_W}p":
            if text := _paragraph(element):
                yield text
        elif element.tag == f"{_W}tbl":
            yield "\n".join(_rows(element))
        elif element.tag == f"{_W}sdt" and (inner := element.find(f"{_W}sdtContent")) is not None:
            yield from _blocks(inner)


def _paragraph(element: Any) -> str:
    text = _text(element).strip()
    properties = element.find(f"{_W}pPr")
    if not text or properties is None:
        return text
    style = properties.find(f"{_W}pStyle")
    heading = _HEADING.fullmatch(style.get(f"{_W}val", "")) if style is not None else None
    if heading:
        return f"{'#' * int(heading[1] or 1)} {text}"
    return f"- {text}" if properties.find(f"{_W}numPr") is not None else text


def _rows(table: Any) -> Iterator[str]:
    for row in _children(table, "tr"):
        cells = (" ".join(_text(cell).split()) for cell in _children(row, "tc"))
        yield f"| {' | '.join(cells)} |"


def _children(parent: Any, name: str) -> Iterator[Any]:
    """Yield a table's rows or a row's cells, none of a table inside: its text is its cell's."""
    for element in parent:
        if element.tag == f"{_W}{name}":
            yield element
        elif element.tag == f"{_W}sdt" and (inner := element.find(f"{_W}sdtContent")) is not None:
            yield from _children(inner, name)


def _text(element: Any) -> str:
    """Return the text of an element, with a line end where a paragraph begins inside."""
    parts: list[str] = []
    for node in element.iter(f"{_W}t", f"{_W}tab", f"{_W}br", f"{_W}cr", f"{_W}p"):
        parts.append((node.text or "") if node.tag == f"{_W}t" else "\t" if node.tag == f"{_W}tab" else "\n")
    return "".join(parts)
