"""Turn the bytes of a text into characters."""

from __future__ import annotations

import codecs
import re

CHARSET_WITHIN = 1_024
"""Browsers look no further for what a page says of its own encoding."""
WINDOWS = "cp1252"
BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    # Before the mark that it begins with.
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

GUESSED = (
    *("cp1251", "koi8_r", "cp866", "iso8859_5", "cp1253", "cp1255", "cp1256"),
    *("shift_jis", "euc_jp", "gb18030", "big5", "euc_kr"),
)
"""What texts that name no encoding are in, where whole words have no Latin letter."""
GUESS_WITHIN = 64 * 1024
GUESS_BYTES_MIN = 20
"""Beyond ASCII: of fewer, each encoding makes something that may be meant."""
DAMAGED_UTF8_MIN = 20
"""Bytes beyond ASCII for each that is wrong, as in a UTF-8 text that breaks off."""
GUESS_RUN_MIN = 2.0
"""Latin letters beyond ASCII stand alone, mostly: the bytes of others come in longer runs."""

CONTROLS_MAX = 0.02
"""The share of control characters in a text, white space left out; random bytes have over a tenth."""
NULS_MAX = 0.3
"""The share of NULs, which stand for spaces in what programs for fixed widths wrote."""
UTF16_NULS_MIN = 0.4
"""The share of NULs at every second byte that only Latin text in two bytes a character has."""

# Only what pages were written in before UTF-8: Python knows other codecs, which are no encodings of text.
_KNOWN = r"(?:windows|cp|iso|koi8|shift|sjis|euc|gb|big5|mac|tis)[a-z0-9_.-]{0,20}"
_NAMED_BY_SENDER = re.compile(rf"{_KNOWN}|utf-?16(?:-?[bl]e)?", re.I)
_NAMED_BY_HTML = re.compile(rf"""<meta[^>]+charset\s*=\s*["']?\s*({_KNOWN})""".encode(), re.I)
_NAMED_BY_XML = re.compile(rf"""\s*<\?xml[^>]{{1,200}}?\bencoding\s*=\s*["']({_KNOWN})""".encode(), re.I)
_BEYOND_ASCII = re.compile(rb"[\x80-\xff]+")
_LINE_ENDS = re.compile("\r\n?|[\x0b\x0c\x85]")
_CONTROLS = re.compile("\x1b\\[[0-?]*[ -/]*[@-~]|[\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
"""Sequences for terminals, control characters, and halves of surrogate pairs."""
_NO_TEXT = bytes([*range(0x01, 0x09), *range(0x0E, 0x1B), *range(0x1C, 0x20), 0x7F])
"""Control characters that no text has; in UTF-8 no other character has one of these bytes."""
_NULS = re.compile(" ?\0[\0 ]*")


def characters(content: bytes, *, html: bool = False, charset: str = "") -> str:
    """Decode bytes by their byte order mark, else as UTF-8, else as sender or page say, else as old editors wrote."""
    for bom, encoding in BYTE_ORDER_MARKS:
        if content.startswith(bom):
            return content.decode(encoding, "replace")
    named = _named(content, charset, html=html) or _two_bytes(content)
    if _only_looks_like_utf8(content, named):
        return _decoded(content, named)
    try:
        return content.decode()
    except UnicodeDecodeError:
        return _decoded(content, named or _guessed(content))


def is_binary(text: str) -> bool:
    """Return whether decoded bytes are no text: too many control characters, or mostly NULs."""
    encoded = text.encode("utf-8", "surrogatepass")
    controls = len(encoded) - len(encoded.translate(None, _NO_TEXT)) + text.count("\ufffd")
    return controls > CONTROLS_MAX * len(text) or text.count("\0") > NULS_MAX * len(text)


def looks_like_text(content: bytes) -> bool:
    """Return whether bytes may be text in some encoding: hardly a control character is in their beginning."""
    sample = content[:GUESS_WITHIN]
    marked = next((encoding for bom, encoding in BYTE_ORDER_MARKS if sample.startswith(bom)), "") or _two_bytes(sample)
    text = sample.decode(marked or "latin-1", "replace")
    return bool(text) and not is_binary(text)


def without_nuls(text: str) -> str:
    """Return a text with a space in the place of NULs, which no Postgres column takes and no word holds."""
    # Looking for one takes a hundredth of what the pattern does.
    return _NULS.sub(" ", text) if "\0" in text else text


def without_controls(text: str) -> str:
    """Return a text without control characters and sequences for terminals; line ends and tabs stay."""
    return _CONTROLS.sub("", _LINE_ENDS.sub("\n", text))


def _named(content: bytes, charset: str, *, html: bool) -> str:
    """Return the encoding that the sender names, else the one that the page does."""
    if _NAMED_BY_SENDER.fullmatch(charset):
        return charset.lower()
    head = content[:CHARSET_WITHIN]
    found = _NAMED_BY_XML.match(head) or (_NAMED_BY_HTML.search(head) if html else None)
    return found[1].decode().lower() if found else ""


def _two_bytes(content: bytes) -> str:
    """Return the UTF-16 of a text without a byte order mark, by where its NULs stand; empty where it is none."""
    sample = content[:GUESS_WITHIN]
    least = UTF16_NULS_MIN * len(sample)
    first, second = sample[::2].count(0), sample[1::2].count(0)
    if len(content) % 2 or first + second < least:
        return ""
    return (
        "utf-16-le" if first * DAMAGED_UTF8_MIN < second else "utf-16-be" if second * DAMAGED_UTF8_MIN < first else ""
    )


def _only_looks_like_utf8(content: bytes, named: str) -> bool:
    """Return whether bytes have what only the named encoding makes of text, though they may be valid UTF-8."""
    return (named.startswith("utf") and b"\0" in content) or (named.startswith("iso-2022") and b"\x1b" in content)


def _decoded(content: bytes, encoding: str) -> str:
    if encoding == "utf-16" and content.startswith(b"\0"):
        encoding = "utf-16-be"
    elif encoding == "iso-8859-1":
        # As browsers do: many who named it wrote with the other one.
        encoding = WINDOWS
    try:
        return content.decode(encoding, "replace")
    except LookupError:
        return content.decode(WINDOWS, "replace")


def _guessed(content: bytes) -> str:
    """Return the encoding of a text that names none and is not UTF-8."""
    sample = content[:GUESS_WITHIN]
    if len(content) > GUESS_WITHIN:
        sample = sample[: sample.rfind(b"\n") + 1] or sample
    runs = _BEYOND_ASCII.findall(sample)
    count = sum(map(len, runs))
    if sample.decode("utf-8", "replace").count("\ufffd") * DAMAGED_UTF8_MIN < count:
        return "utf-8"
    if count < GUESS_BYTES_MIN or count / len(runs) <= GUESS_RUN_MIN:
        return WINDOWS
    from charset_normalizer import from_bytes

    best = from_bytes(sample, cp_isolation=list(GUESSED)).best()
    return best.encoding if best is not None else WINDOWS
