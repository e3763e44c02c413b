"""The bytes of an image as providers send them: in some form of base64, and whole or cut."""

from __future__ import annotations

from base64 import b64decode
from urllib.parse import unquote

_SCAN, _FILL = 0xDA, 0xFF
"""Of a JPEG: what begins its pixels, and what may stand before a marker."""
_PLAIN = str.maketrans("-_", "+/", " \t\n\r\v\f")
"""The alphabet of addresses as the usual one, and no white space."""


def decoded(text: str) -> bytes:
    """Return the bytes of base64, also with line breaks, as a `data:` URI or without padding. Raises ValueError."""
    plain = _plain(text)
    return b64decode(plain + "=" * (-len(plain) % 4), validate=True)


def decoded_head(text: str) -> bytes:
    """Return the bytes that base64 begins with, which was cut anywhere. Raises ValueError."""
    plain = _plain(text)
    return b64decode(plain[: len(plain) // 4 * 4], validate=True)


def _plain(text: str) -> str:
    text = text.lstrip()
    if is_data_uri(text):
        text = unquote(text.partition(",")[2])
    return text.translate(_PLAIN).rstrip("=")


def is_data_uri(text: str) -> bool:
    """Return whether an address holds its content itself."""
    return text[:5].lower() == "data:"


def is_whole(content: bytes, media_type: str) -> bool:
    """Return whether an image has its end; what follows that does no harm."""
    match media_type:
        case "image/png":
            return _png_ends(content)
        case "image/jpeg":
            return _jpeg_ends(content)
        case "image/webp":
            return 8 + int.from_bytes(content[4:8], "little") <= len(content)
        case _:
            # What ends a GIF is in the middle of one, too.
            return True


def _png_ends(content: bytes) -> bool:
    at = 8
    while at + 12 <= len(content):
        length = int.from_bytes(content[at : at + 4], "big")
        if content[at + 4 : at + 8] == b"IEND":
            return True
        at += 12 + length
    return False


def _jpeg_ends(content: bytes) -> bool:
    """Look for the end behind the segments: one of them may hold a small JPEG with an end of its own."""
    at = 2
    while at + 4 <= len(content) and content[at] == _FILL:
        if content[at + 1] == _SCAN:
            return content.find(b"\xff\xd9", at) > 0
        at += 1 if content[at + 1] == _FILL else 2 + int.from_bytes(content[at + 2 : at + 4], "big")
    return False
