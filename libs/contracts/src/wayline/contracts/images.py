"""What an image says of itself: its format and its size, from its first bytes."""

from __future__ import annotations

import struct
from dataclasses import dataclass

_JPEG_SIZES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_JPEG_ALONE = frozenset({0x01, *range(0xD0, 0xDA)})


@dataclass(frozen=True, slots=True)
class Image:
    """What an image says of itself."""

    media_type: str
    width: int
    height: int


def seen(content: bytes) -> Image | None:
    """Recognise the image in some bytes, whatever their sender said; None: none that models take, or it is damaged."""
    try:
        media_type, (width, height) = _read(content)
    except (struct.error, IndexError, ValueError):
        return None
    return Image(media_type, width, height) if width and height else None


def _read(content: bytes) -> tuple[str, tuple[int, int]]:
    if content.startswith(b"\x89PNG\r\n\x1a\n") and content[12:16] == b"IHDR":
        return "image/png", struct.unpack(">II", content[16:24])
    if content[:6] in (b"GIF87a", b"GIF89a"):
        return "image/gif", struct.unpack("<HH", content[6:10])
    if content.startswith(b"\xff\xd8\xff"):
        return "image/jpeg", _jpeg(content)
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp", _webp(content)
    raise ValueError("no image")


def _jpeg(content: bytes) -> tuple[int, int]:
    """Read the size from the frame's header, which comes after any number of other segments."""
    at = 2
    while True:
        if content[at] != 0xFF:
            raise ValueError("no segment here")
        marker = content[at + 1]
        if marker == 0xFF or marker in _JPEG_ALONE:
            at += 1 if marker == 0xFF else 2
            continue
        if marker in _JPEG_SIZES:
            height, width = struct.unpack(">HH", content[at + 5 : at + 9])
            return width, height
        (length,) = struct.unpack(">H", content[at + 2 : at + 4])
        at += 2 + length


def _webp(content: bytes) -> tuple[int, int]:
    """Read the size from one of its three kinds: lossy, lossless, and one that begins with its parts."""
    kind = content[12:16]
    if kind == b"VP8 ":
        width, height = struct.unpack("<HH", content[26:30])
        return width & 0x3FFF, height & 0x3FFF
    if kind == b"VP8L":
        (bits,) = struct.unpack("<I", content[21:25])
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8X":
        sides = content[24:30]
        if len(sides) < 6:
            raise ValueError("cut off")
        return int.from_bytes(sides[:3], "little") + 1, int.from_bytes(sides[3:], "little") + 1
    raise ValueError("no kind of WebP")
