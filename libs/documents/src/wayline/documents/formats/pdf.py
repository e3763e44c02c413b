"""Text out of PDF files, page by page."""

from __future__ import annotations

import io
import time
from itertools import islice
from typing import Any

from wayline.documents.errors import Unreadable
from wayline.documents.formats.pdf_columns import ROWS_MIN, in_columns, in_rows
from wayline.documents.formats.pdf_fields import filled_lines
from wayline.documents.formats.pdf_hyphens import joined
from wayline.documents.formats.pdf_scans import scanned_text
from wayline.documents.readable import PageClock, PageTimeout, ReadLimits, no_clock

HEADER_WITHIN = 1_024
"""Readers accept a PDF whose header comes within so many bytes."""


def pdf_pages(content: bytes, limits: ReadLimits, clock: PageClock = no_clock) -> list[str]:
    """Return the text of each page. Blocking; raises Unreadable for what is encrypted, broken or too much.

    Limits that cut leave out the pages beyond them instead.
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
        if count > limits.pages_max and not limits.cut:
            raise Unreadable(
                f"The PDF has {count} pages and at most {limits.pages_max} are read: {limits.pages_advice}."
            )
        return joined(_texts(reader, limits, clock))
    except (Unreadable, MemoryError):
        raise
    except DependencyError:
        raise Unreadable("The PDF is encrypted in a way that cannot be undone here: save it without.") from None
    # A broken file makes the parser raise almost anything: KeyError, RecursionError, struct.error …
    except Exception as error:
        raise Unreadable(
            f"The PDF is damaged and cannot be read ({type(error).__name__}): open it in a viewer and save it anew."
        ) from error


def _texts(reader: Any, limits: ReadLimits, clock: PageClock) -> list[str]:
    deadline = time.monotonic() + limits.document_s
    texts: list[str] = []
    for number, page in enumerate(islice(reader.pages, limits.pages_max), start=1):
        if time.monotonic() > deadline:
            problem = f"Reading the PDF took longer than {limits.document_s:g} s (it stopped at page {number})"
        else:
            try:
                with clock(number):
                    texts.append("\n".join(filter(None, [_text(page) or _scanned(page, limits), *_filled(page)])))
                continue
            except PageTimeout:
                problem = f"Reading page {number} of the PDF took longer than {limits.page_s:g} s"
        if limits.cut and texts:
            break
        raise Unreadable(f"{problem}: split it, or print it to a new PDF.")
    return texts


def _scanned(page: Any, limits: ReadLimits) -> str:
    return scanned_text(page, limits) if limits.ocr_program else ""


def _text(page: Any) -> str:
    """Read a page in reading order: some files hold columns row by row."""
    plain = page.extract_text() or ""
    if not plain.strip():
        return ""
    if plain.count("\n") < ROWS_MIN:
        return plain
    try:
        layout = page.extract_text(extraction_mode="layout")
    except Exception:  # what the plain reading takes may be too odd for this one, which raises almost anything
        return plain
    return in_columns(layout) or in_rows(layout, plain) or plain


def _filled(page: Any) -> list[str]:
    try:
        return filled_lines(page)
    except Exception:  # a page is worth reading without its form, which may be as broken as anything
        return []
