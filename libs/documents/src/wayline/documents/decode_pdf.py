"""Text out of PDF files, page by page."""

from __future__ import annotations

import io
import time
from itertools import islice
from typing import Any

from wayline.documents.errors import Unreadable
from wayline.documents.pdf_columns import ROWS_MIN, in_columns

HEADER_WITHIN = 1_024
"""Readers accept a PDF whose header comes within so many bytes."""


def pdf_pages(
    content: bytes, *, pages_max: int, seconds_max: float, advice: str = "split it", cut: bool = False
) -> list[str]:
    """Return the text of each page. Blocking; raises Unreadable for what is encrypted, broken or too much.

    With `cut` the pages beyond the limits are left out instead.
    """
    if b"%PDF-" not in content[:HEADER_WITHIN]:
        raise Unreadable("This is not a PDF, whatever its name says: check the file and its media type.")
    import pypdf
    from pypdf.errors import DependencyError

    try:
        reader = pypdf.PdfReader(io.BytesIO(content))
        # Many files are encrypted with an empty password, against changes only.
        if reader.is_encrypted and not reader.decrypt(""):
            raise Unreadable("The PDF is encrypted: remove its password and send it again.")
        count = len(reader.pages)
        if count > pages_max and not cut:
            raise Unreadable(f"The PDF has {count} pages and at most {pages_max} are read: {advice}.")
        return _texts(reader, pages_max, seconds_max, cut=cut)
    except Unreadable:
        raise
    except DependencyError:
        raise Unreadable("The PDF is encrypted in a way that cannot be undone here: save it without.") from None
    # A broken file makes the parser raise almost anything: KeyError, RecursionError, struct.error …
    except Exception as error:
        raise Unreadable(
            f"The PDF is damaged and cannot be read ({type(error).__name__}): open it in a viewer and save it anew."
        ) from error


def _texts(reader: Any, pages_max: int, seconds_max: float, *, cut: bool) -> list[str]:
    deadline = time.monotonic() + seconds_max
    texts: list[str] = []
    for page in islice(reader.pages, pages_max):
        if time.monotonic() > deadline:
            if cut and texts:
                return texts
            raise Unreadable(
                f"Reading the PDF took longer than {seconds_max:g} s (it stopped at page {len(texts) + 1}): split it."
            )
        texts.append(_text(page))
    return texts


def _text(page: Any) -> str:
    """Read a page in reading order: some files hold columns row by row."""
    plain = page.extract_text() or ""
    if plain.count("\n") < ROWS_MIN:
        return plain
    try:
        layout = page.extract_text(extraction_mode="layout")
    except Exception:  # what the plain reading takes may be too odd for this one, which raises almost anything
        return plain
    return in_columns(layout) or plain
