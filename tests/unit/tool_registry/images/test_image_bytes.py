"""Images in all forms in which providers send them, and those that break off."""

from __future__ import annotations

from base64 import b64encode, encodebytes, urlsafe_b64encode
from urllib.parse import quote

import pytest

from wayline.testkit.media import png
from wayline.tool_registry.images.image_bytes import decoded, is_whole

PNG = png(64, 64)
THUMBNAIL = b"\xff\xd8\xff\xda\0\x02xx\xff\xd9"
JPEG = (
    b"\xff\xd8\xff\xe1"
    + (2 + len(THUMBNAIL)).to_bytes(2, "big")
    + THUMBNAIL
    + b"\xff\xff\xc0\0\x0b\x08\0\x10\0\x10\x01\x01\x11\0\xff\xda\0\x08\x01\x01\0\0?\0"
    + b"pixels"
    + b"\xff\xd9"
)
WEBP = b"RIFF" + (20).to_bytes(4, "little") + b"WEBPVP8L" + bytes(12)
PLAIN = b64encode(PNG).decode()


@pytest.mark.parametrize(
    "text",
    [
        PLAIN,
        encodebytes(PNG).decode(),
        encodebytes(PNG).decode().replace("\n", "\r\n"),
        f"data:image/png;base64,{PLAIN}",
        f"\nDATA:image/png;base64,{quote(PLAIN, safe='')}\n",
        PLAIN.rstrip("="),
        urlsafe_b64encode(PNG).decode(),
    ],
)
def test_base64_in_each_form_is_decoded(text: str):
    assert decoded(text) == PNG


@pytest.mark.parametrize("text", ["no base64!", "A", "data:image/png;base64,é"])
def test_what_is_no_base64_is_refused(text: str):
    with pytest.raises(ValueError, match="base64|padding|ASCII|multiple"):
        decoded(text)


@pytest.mark.parametrize(
    ("content", "media_type"),
    [(PNG, "image/png"), (JPEG, "image/jpeg"), (WEBP, "image/webp")],
    ids=["png", "jpeg", "webp"],
)
def test_an_image_is_whole_to_its_last_byte_alone(content: bytes, media_type: str):
    assert is_whole(content, media_type)
    assert is_whole(content + b"more", media_type)
    assert not any(is_whole(content[:end], media_type) for end in range(len(content)))
