"""Read what was filled into the form of a PDF page, and what was written onto it as notes that it shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

LEVELS_MAX = 32
"""Of a field in fields, which a broken file may nest in a circle."""
PASSWORD, PUSH_BUTTON = 1 << 13, 1 << 16
"""Flags of fields, ISO 32000-2, tables 229 and 231."""
NOT_CHOSEN = "/Off"


def filled_lines(page: Any) -> list[str]:
    """Return a line for each field of a page that holds a value, with its label, and one for each note on it."""
    lines: list[str] = []
    for reference in page.get("/Annots") or ():
        annotation = reference.get_object()
        kind = annotation.get("/Subtype")
        if kind == "/Widget":
            lines.extend(_field_line(annotation))
        elif kind == "/FreeText" and annotation.get("/Contents"):
            lines.append(_text_of(annotation["/Contents"]))
    return lines


def _field_line(widget: Any) -> Iterator[str]:
    levels = list(_levels(widget))
    kind, flags = _inherited(levels, "/FT"), _inherited(levels, "/Ff") or 0
    label = _inherited(levels, "/TU") or ".".join(str(one["/T"]) for one in reversed(levels) if "/T" in one)
    if kind == "/Btn" and not flags & PUSH_BUTTON:
        # Of several buttons with one name each has its own state.
        value = widget.get("/AS") or _inherited(levels, "/V") or NOT_CHOSEN
        if value != NOT_CHOSEN:
            yield f"{label}: {str(value).lstrip('/')}"
    elif kind in ("/Tx", "/Ch") and not (kind == "/Tx" and flags & PASSWORD):
        value = _inherited(levels, "/V")
        text = ", ".join(map(_text_of, value)) if isinstance(value, list) else _text_of(value or "")
        if text.strip():
            yield f"{label}: {text}"


def _levels(field: Any) -> Iterator[Any]:
    """Yield a field and those that it is a part of, from which it has what it does not say itself."""
    for _ in range(LEVELS_MAX):
        yield field
        field = field.get("/Parent")
        if field is None:
            return
        field = field.get_object()


def _inherited(levels: list[Any], key: str) -> Any:
    value = next((one[key] for one in levels if key in one), None)
    return None if value is None else value.get_object()


def _text_of(value: Any) -> str:
    """Return a text, which may be kept in a stream of its own."""
    found = value.get_object() if hasattr(value, "get_object") else value
    if hasattr(found, "get_data"):
        return found.get_data().decode("utf-8", errors="replace")
    return str(found)
