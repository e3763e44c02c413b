"""Images and PDFs as the providers take them: what they refuse, and how many tokens they count.

An image is squares of 28 pixels on Claude, of 32 on OpenAI, where each is 1.2 tokens; larger ones count as the largest,
and elsewhere each costs `IMAGE_TOKENS`. A page of a PDF costs `PAGE_TOKENS`. Sizes are read from PNG only; an image in
another format costs the most that one can.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
import struct
from typing import Any

from wayline.simulator.models import Facts
from wayline.simulator.prompt.counting import IMAGE_TOKENS, PAGE_TOKENS
from wayline.simulator.refusals import Refusal
from wayline.simulator.request import Body

KINDS = {
    "image/jpeg": b"\xff\xd8\xff",
    "image/png": b"\x89PNG",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
}
PDF = "application/pdf"
IMAGE_ENCODED_MAX = 5 * 1024 * 1024
IMAGE_PX_MAX = 8_000
CLAUDE_PATCH_PX = 28
GPT_PATCH_PX = 32
GPT_PATCH_TOKENS = 1.2
GPT_PATCHES_MAX = {"high": 2_500, "low": 256}
"""Of other details, so many as there are."""
DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+);base64,(.*)", re.DOTALL)
PAGE = re.compile(rb"/Type\s*/Page\b(?!s)")


def check_claude_image(block: Body, at: str) -> None:
    """Refuse what Messages refuses about an image, in its words."""
    source = block.get("source") or {}
    if source.get("type") != "base64":
        return
    where, media_type, data = f"{at}.image.source.base64", source.get("media_type"), source.get("data") or ""
    if media_type not in KINDS:
        raise Refusal(f"{where}.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'")
    if len(data) > IMAGE_ENCODED_MAX:
        raise Refusal(f"{where}: image exceeds 5 MB maximum: {len(data)} bytes > {IMAGE_ENCODED_MAX} bytes")
    content = _decoded(data, f"{where}.data: Invalid base64 data")
    if not content.startswith(KINDS[media_type]):
        raise Refusal(f"{where}.data: Image does not match the provided media type {media_type}")
    if max(_size(content) or (0, 0)) > IMAGE_PX_MAX:
        most = f"At least one of the image dimensions exceed max allowed size: {IMAGE_PX_MAX} pixels"
        raise Refusal(f"{where}.data: {most}")


def check_claude_document(block: Body, at: str, pages_max: int) -> None:
    source = block.get("source") or {}
    if source.get("type") != "base64":
        return
    where = f"{at}.document.source.base64"
    if source.get("media_type") != PDF:
        raise Refusal(f"{where}.media_type: Input should be '{PDF}'")
    content = _decoded(source.get("data") or "", f"{where}.data: Invalid base64 data")
    if not content.startswith(b"%PDF"):
        raise Refusal(f"{where}.data: The PDF specified was not valid.")
    if _pages(content) > pages_max:
        raise Refusal(f"{where}.data: A maximum of {pages_max} PDF pages may be provided.")


def claude_tokens(block: Body, facts: Facts) -> int:
    """Count the tokens of an image or a document on Claude."""
    source = block.get("source") or {}
    content = base64.b64decode(source["data"]) if source.get("type") == "base64" else b""
    if block.get("type") == "document":
        return _pages(content) * PAGE_TOKENS
    size = _size(content)
    return facts.image_tokens_max if size is None else min(_squares(*size, CLAUDE_PATCH_PX), facts.image_tokens_max)


def gpt_image(url: Any, detail: str, facts: Facts) -> int:
    """Count the tokens of an image on OpenAI. Raises Refusal for one that it does not accept."""
    found = DATA_URL.match(url) if isinstance(url, str) else None
    if found is None:
        # An address or the id of a file, which nobody looks up here.
        return IMAGE_TOKENS
    content = _decoded(found[2], "Invalid 'image_url': the data is not valid base64.")
    if found[1] not in KINDS or not content.startswith(KINDS[found[1]]):
        formats = "of one the following formats: ['png', 'jpeg', 'gif', 'webp']."
        message = f"You uploaded an unsupported image. Please make sure your image has {formats}"
        raise Refusal(message, code="invalid_image_format")
    size = _size(content)
    if facts.provider != "openai":
        return IMAGE_TOKENS
    width, height = size or (IMAGE_PX_MAX, IMAGE_PX_MAX)
    patches = min(_squares(width, height, GPT_PATCH_PX), GPT_PATCHES_MAX.get(detail, math.inf))
    return math.ceil(patches * GPT_PATCH_TOKENS)


def gpt_file(part: Body) -> int:
    """Count the tokens of a file on OpenAI, which accepts only PDFs here."""
    data = part.get("file_data")
    if data is None:
        return PAGE_TOKENS
    found = DATA_URL.match(data)
    content = _decoded(found[2], "Invalid file data: not valid base64.") if found else b""
    if not found or found[1] != PDF or not content.startswith(b"%PDF") or not part.get("filename"):
        raise Refusal("Invalid file data: expected a named PDF as a base64 data URL.", code="invalid_value")
    return _pages(content) * PAGE_TOKENS


def _squares(width: int, height: int, side: int) -> int:
    return math.ceil(width / side) * math.ceil(height / side)


def _size(content: bytes) -> tuple[int, int] | None:
    return struct.unpack(">II", content[16:24]) if content[12:16] == b"IHDR" else None


def _pages(content: bytes) -> int:
    return max(1, len(PAGE.findall(content)))


def _decoded(data: str, message: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise Refusal(message) from None
