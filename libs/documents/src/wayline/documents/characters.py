"""Turn the bytes of a text into characters."""

from __future__ import annotations

import codecs
import re

CHARSET_WITHIN = 1_024
"""Browsers look no further for what a page says of its own encoding."""
WINDOWS = "cp1252"
BYTE_ORDER_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))

# Only what pages were written in before UTF-8: Python knows other codecs, which are no encodings of text.
_KNOWN = rb"(?:windows|cp|iso|koi8|shift|sjis|euc|gb|big5|mac|tis)[a-z0-9_.-]{0,20}"
_CHARSET = re.compile(rb"""<meta[^>]+charset\s*=\s*["']?\s*(""" + _KNOWN + rb")", re.I)


def characters(content: bytes, *, html: bool = False, charset: str = "") -> str:
    """Decode bytes by their byte order mark, else as UTF-8, else as sender or page say, else as old editors wrote."""
    for bom, encoding in BYTE_ORDER_MARKS:
        if content.startswith(bom):
            return content.decode(encoding, "replace")
    try:
        return content.decode()
    except UnicodeDecodeError:
        named = re.fullmatch(_KNOWN, charset.encode(errors="replace"), re.I)
    if named is None and html and (found := _CHARSET.search(content[:CHARSET_WITHIN])):
        charset = found[1].decode()
    elif named is None:
        charset = WINDOWS
    try:
        return content.decode(charset, "replace")
    except LookupError:
        return content.decode(WINDOWS, "replace")
