"""The size of an image is read from its first bytes, in every format that models take."""

import struct

import pytest

from wayline.contracts.images import Image, seen
from wayline.testkit.media import png


def jpeg(width: int, height: int, *, before: bytes = b"") -> bytes:
    frame = b"\xff\xc2" + struct.pack(">HBHHB", 11, 8, height, width, 1) + b"\1\x11\0"
    return b"\xff\xd8" + before + frame + b"\xff\xda"


def webp(kind: bytes, body: bytes) -> bytes:
    return b"RIFF" + struct.pack("<I", 12 + len(body)) + b"WEBP" + kind + struct.pack("<I", len(body)) + body


EXIF = b"\xff\xe1" + struct.pack(">H", 10) + b"Exif\xff\xc0\0\0"
LOSSY = b"\x30\x01\x00\x9d\x01\x2a" + struct.pack("<HH", 640, 480)
LOSSLESS = b"\x2f" + struct.pack("<I", 639 | 479 << 14)
EXTENDED = bytes(4) + (639).to_bytes(3, "little") + (479).to_bytes(3, "little")


@pytest.mark.parametrize(
    ("content", "media_type"),
    [
        (png(640, 480), "image/png"),
        (b"GIF89a" + struct.pack("<HH", 640, 480) + b"\0\0\0", "image/gif"),
        (jpeg(640, 480), "image/jpeg"),
        (jpeg(640, 480, before=EXIF + b"\xff\xff\xfe\0\2"), "image/jpeg"),
        (webp(b"VP8 ", LOSSY), "image/webp"),
        (webp(b"VP8L", LOSSLESS), "image/webp"),
        (webp(b"VP8X", EXTENDED), "image/webp"),
    ],
)
def test_format_and_size_are_read_from_the_bytes(content: bytes, media_type: str):
    assert seen(content) == Image(media_type, 640, 480)
    for end in range(len(content)):
        assert seen(content[:end]) in (None, Image(media_type, 640, 480))


@pytest.mark.parametrize(
    "content",
    [b"", b"hello", b"BM" + bytes(60), png(0, 3), jpeg(0, 0), b"\xff\xd8\xff" + bytes(99), webp(b"NEW ", b"")],
)
def test_what_is_no_image_of_those_formats_is_none(content: bytes):
    assert seen(content) is None
