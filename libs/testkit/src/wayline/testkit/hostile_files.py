"""Small files that cost their readers far more than their size."""

from __future__ import annotations

import io
import zipfile
import zlib

from wayline.testkit.media import written_pdf

MEGABYTE = 1024 * 1024
FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"


def dense_pdf(size_bytes: int, *, before: str = "") -> bytes:
    """Make a PDF whose last page is so large unpacked, about 390 times its size; `before` is a page before it."""
    shown = b"BT /F1 12 Tf 0 0 Td (a) Tj ET\n"
    first = [f"BT /F1 12 Tf 50 700 Td ({before}) Tj ET".encode()] if before else []
    return packed_pdf(*first, shown * (size_bytes // len(shown)))


def inflating_pdf(size_bytes: int) -> bytes:
    """Make a PDF whose page is one stream of zeros."""
    return packed_pdf(b"\0" * size_bytes)


def packed_pdf(*contents: bytes) -> bytes:
    """Make a PDF of pages with these contents, compressed."""
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(contents)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(contents)} >>".encode(),
        FONT,
    ]
    for n, content in enumerate(contents):
        packed = zlib.compress(content, 9)
        page = f"/Parent 2 0 R /MediaBox [0 0 600 800] /Resources << /Font << /F1 3 0 R >> >> /Contents {5 + 2 * n} 0 R"
        objects.append(f"<< /Type /Page {page} >>".encode())
        objects.append(
            b"<< /Length %d /Filter /FlateDecode >>\nstream\n%b\nendstream" % (len(packed), packed),
        )
    return written_pdf(objects)


def zip_bomb(size_bytes: int, *, name: str = "word/document.xml") -> bytes:
    """Make a zip file with one part that is so large unpacked."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive, archive.open(name, "w") as part:
        part.write(b"<a>")
        for _ in range(size_bytes // MEGABYTE):
            part.write(b"A" * MEGABYTE)
    return file.getvalue()


def deep_html(elements: int) -> bytes:
    """Make a page of elements that all stand within each other."""
    return b"<div>" * elements + b"words"
