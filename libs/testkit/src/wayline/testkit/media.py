"""Small real images and PDFs, made without a library."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence


def png(width: int, height: int, *, shade: int = 0) -> bytes:
    """Make a grey image; another shade is another file."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = (b"\0" + bytes([shade]) * width) * height
    parts = (chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def pdf(*pages: str) -> bytes:
    """Make a document with one line of text a page; an empty line makes an empty page."""
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for n, text in enumerate(pages):
        shown = f"BT /F1 12 Tf 50 700 Td ({text}) Tj ET".encode() if text else b""
        fonts = "<< /Font << /F1 3 0 R >> >>"
        page = f"/Parent 2 0 R /MediaBox [0 0 600 800] /Resources {fonts} /Contents {5 + 2 * n} 0 R"
        objects.append(f"<< /Type /Page {page} >>".encode())
        objects.append(b"<< /Length %d >>\nstream\n%b\nendstream" % (len(shown), shown))
    return written_pdf(objects)


def written_pdf(objects: Sequence[bytes]) -> bytes:
    """Write the objects one after another, with the table of where each begins."""
    out, places = b"%PDF-1.7\n", list[int]()
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    head = b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    tail = b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, len(out))
    return out + head + table + tail
