"""What is pinned to an agent as rows of a form: documents, images and texts that follow its instructions. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from wayline.console.render.form_rows import EMPTY_ROWS, Get, SentRow, sent_rows
from wayline.console.render.schema_form import WrongField

NAME: Final = "pinned"
KINDS: Final = (("file", "document"), ("image", "image"), ("text", "text"))


@dataclass(frozen=True, slots=True)
class PinnedRow:
    """One row: a document or an image by its id, or a text."""

    kind: str = "file"
    document: str = ""
    text: str = ""
    sha256: str = ""
    """The bytes that it keeps; empty: those that its document has when the agent is saved."""
    error: str = ""
    kinds: tuple[tuple[str, str], ...] = KINDS

    @property
    def is_empty(self) -> bool:
        return not (self.text if self.kind == "text" else self.document)

    def part(self) -> dict[str, Any]:
        """Return the part of a prompt that it stands for."""
        if self.kind == "text":
            return {"type": "text", "text": self.text}
        bytes_kept = {"sha256": self.sha256} if self.sha256 else {}
        return {"type": self.kind, "document_id": self.document, **bytes_kept}


def rows_of(parts: Sequence[Mapping[str, Any]] | None) -> list[PinnedRow] | None:
    """Return the rows of what is pinned, with empty ones below; None: a part is of a kind that no row shows."""
    if any(part.get("type") not in dict(KINDS) for part in parts or ()):
        return None
    rows = [
        PinnedRow(part["type"], part.get("document_id", ""), part.get("text", ""), part.get("sha256") or "")
        for part in parts or ()
    ]
    return with_room(rows)


def with_room(rows: Sequence[PinnedRow]) -> list[PinnedRow]:
    """Return rows with empty ones below."""
    return [*rows, *([PinnedRow()] * EMPTY_ROWS)]


def read_rows(get: Get) -> list[PinnedRow] | None:
    """Return the rows that a form sends, those that are filled in; None: it has none."""
    rows = [_row(sent) for sent in sent_rows(get, NAME, by="kind")]
    return [row for row in rows if not row.is_empty or row.error] if rows else None


def parts_of(rows: Sequence[PinnedRow]) -> list[dict[str, Any]]:
    """Return what rows pin. Raises WrongField."""
    wrong = next(((number, row.error) for number, row in enumerate(rows, 1) if row.error), None)
    if wrong:
        raise WrongField(NAME, f"row {wrong[0]}: {wrong[1]}")
    return [row.part() for row in rows]


def _row(sent: SentRow) -> PinnedRow:
    row = PinnedRow(sent.text("kind"), sent.text("document"), sent.text("text"))
    if row.kind not in dict(KINDS):
        return replace(row, error=f"{row.kind[:20]!r} is none of {', '.join(kind for kind, _ in KINDS)}")
    if row.kind == "text" and row.document and not row.text:
        return replace(row, error="write the text, or choose document or image for the id of one")
    if row.kind != "text" and row.text and not row.document:
        return replace(row, error="write the document's id, or choose text for words of your own")
    is_same = row.document == sent.text("of") and not sent.ticked("renew")
    return replace(row, sha256=sent.text("sha256")) if is_same else row
