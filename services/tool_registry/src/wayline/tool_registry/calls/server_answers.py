"""Decide what a server's answer to a call proves. One table, for every wire.

| under the call's id came | verdict | the caller is told |
|---|---|---|
| a `result`, of any shape or size, also one that cannot be read whole | acted | the result, or what of it can be read |
| an `error`, of any code, or a status from 400 to 499 | refused | the server's words; it may have acted all the same |
| anything else, or nothing | unknown | nothing: the call's effect decides what happens next |

No answer of a server proves that nothing happened: only our own code can, before it sends the request.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pydantic_core import from_json

from wayline.contracts.working_context import ENTITIES_PER_RESULT_MAX
from wayline.tool_registry.calls.structured_content import ENTITIES, with_structured

UNREAD = "wayline/unread"
"""In the `_meta` of a result: why it could not be read whole."""
STRUCTURED = "wayline/structured"
"""In the `_meta` of a result, set here: its structured content as JSON, where it is too large to be kept as values."""
BROKE = "the connection broke before its answer had ended"
SHOWN_MAX_CHARS = 20_000
"""Of an answer that cannot be read as JSON."""
STRUCTURED_MAX_BYTES = 64 * 1024
"""Of structured content as JSON; more is given as text, which everything after it reads in no time."""
VALUES_MAX = 200_000
"""Values of a message; what holds more takes seconds to read, whatever thread it is read on."""
BLOCKS_MAX = 200
"""Content blocks of a result; what comes after them is one text. To read a thousand of them takes the MCP library 30 ms
of the event loop."""
HEAD_CHARS = 64 * 1024
"""Of an answer that cannot be read whole: where its first keys are looked for."""
NO_TYPE = "application/octet-stream"
NO_WORDS = "the server failed without saying why"
DIGITS_MAX = 4_000
"""Of one number; a longer one becomes text, because Python refuses to read it."""

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:]')
_VALUE = re.compile(r"\s*(-?\d{1,18}|\"(?:[^\"\\]|\\.){0,200}\"|null)")


class Verdict(StrEnum):
    """What an answer proves."""

    ACTED = "acted"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Answer:
    """What a server said under the id of a call."""

    verdict: Verdict
    id: Any = None
    result: Any = None
    code: int = 0
    words: str = ""
    """Of a refusal."""
    data: Any = None


class Unreadable(ValueError):
    """Bytes that are no JSON, however kindly they are read."""


def message_in(raw: bytes) -> Any:
    """Return the JSON value of a message, with U+FFFD where it holds no character. Raises Unreadable."""
    if holds_too_much(raw):
        raise Unreadable(f"it holds more than {VALUES_MAX} values")
    try:
        return from_json(raw)
    except ValueError:
        pass
    text = text_in(raw)
    try:
        value = json.loads(text, strict=False, parse_int=_whole_number)
        # What the library cannot read after us, because it is nested too deep, cannot be read.
        return from_json(whole_characters(json.dumps(value, ensure_ascii=False)))
    except (ValueError, RecursionError):
        raise Unreadable("it is no JSON") from None


def holds_too_much(raw: bytes) -> bool:
    """Return whether JSON holds more values than are read; what stands in its texts does not count."""
    if len(raw) < VALUES_MAX:
        return False
    quotes = raw.count(b'"') - raw.count(b'\\"')
    if quotes > 4 * VALUES_MAX:
        return True
    outside = raw.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')[::2]
    return sum(part.count(b",") for part in outside) > VALUES_MAX


def answer_in(message: Any) -> Answer:
    """Return what a message says of the call under whose id it came."""
    if not isinstance(message, dict):
        return Answer(Verdict.UNKNOWN)
    call_id, error = message.get("id"), message.get("error")
    if message.get("result") is not None or ("result" in message and error is None):
        # Also beside an error: a call that is told as failed is made again.
        return Answer(Verdict.ACTED, call_id, result=message["result"])
    if error is None:
        return Answer(Verdict.UNKNOWN, call_id)
    code, words, data = _refusal(error)
    return Answer(Verdict.REFUSED, call_id, code=code, words=words, data=data)


def answer_in_part(raw: bytes, why: str, *, most: int = SHOWN_MAX_CHARS) -> Answer:
    """Return what bytes say of a call that are not a whole message: a `result` that was begun has acted."""
    text = text_in(raw[: 4 * HEAD_CHARS])
    keys = first_keys(text[:HEAD_CHARS])
    call_id = _value_at(text, keys.get("id"))
    if (at := keys.get("result")) is None:
        return Answer(Verdict.UNKNOWN, call_id)
    return Answer(Verdict.ACTED, call_id, result=unread(text[at:].strip(), why, most_bytes=most))


def unread(shown: str, why: str, *, most_bytes: int = SHOWN_MAX_CHARS) -> dict[str, Any]:
    """Return the result of a tool whose own cannot be read whole, with as much of it as can be shown."""
    note = f"[The tool has run: do not repeat the call only for this. Its answer could not be read whole: {why}.]"
    begin = shown[:SHOWN_MAX_CHARS].encode()[: max(0, most_bytes - len(note.encode()) - 1)].decode("utf-8", "ignore")
    text = f"{note}\n{begin}".strip()
    return {"content": [{"type": "text", "text": text}], "_meta": {UNREAD: why}}


def fitted_result(result: Any, *, is_block: Callable[[Any], bool]) -> dict[str, Any]:
    """Return the result of a tool in the shape that the protocol gives it; what does not fit becomes text.

    `is_block` tells whether a value is a content block as it is.
    """
    if not isinstance(result, dict):
        return {"content": [] if result is None else [_text_block(result)]}
    content = result.get("content")
    blocks = content if isinstance(content, list) else [] if content is None else [content]
    known = {"content", "structuredContent", "isError", "_meta", "resultType"}
    rest = {name: value for name, value in result.items() if name not in known and value is not None}
    structured = result.get("structuredContent")
    if content is None and structured is None and rest:
        # A tool that answered with its bare value.
        blocks = [rest]
    fitted: dict[str, Any] = {
        "content": [_fitted_block(one, is_block) for one in blocks],
        "isError": _is_true(result.get("isError")),
        "resultType": "complete",
    }
    if isinstance(structured, dict):
        fitted["structuredContent"] = structured
    elif structured is not None:
        fitted["content"].append(_text_block(structured))
    if isinstance(result.get("_meta"), dict):
        fitted["_meta"] = result["_meta"]
    return fitted


def _fitted_block(one: Any, is_block: Callable[[Any], bool]) -> dict[str, Any]:
    """Return a content block as it is, with the media type that an image lacks, or as text."""
    if is_block(one):
        return one
    if isinstance(one, dict) and one.get("type") in ("image", "audio"):
        # Its data tell what it is; as text they would be thousands of tokens that nobody can read.
        named = {**one, "mimeType": NO_TYPE}
        if is_block(named):
            return named
    return _text_block(one)


def bounded_result(result: dict[str, Any], *, most: int) -> dict[str, Any]:
    """Return a result whose texts, blocks and structured content are bounded, so that nothing after it takes long."""
    if isinstance(meta := result.get("_meta"), dict) and STRUCTURED in meta:
        result = {**result, "_meta": {name: value for name, value in meta.items() if name != STRUCTURED}}
    if isinstance(result.get("structuredContent"), dict | list):
        result = _with_little_structure(result)
    content = result.get("content")
    if not isinstance(content, list):
        return result
    if len(content) > BLOCKS_MAX:
        more = "\n".join(_words(one) for one in content[BLOCKS_MAX:])
        content = [*content[:BLOCKS_MAX], {"type": "text", "text": more}]
        result = {**result, "content": content}
    texts = [one["text"] for one in content if _is_text(one)]
    size = sum(len(text) if text.isascii() else len(text.encode("utf-8", "replace")) for text in texts)
    if size <= most:
        return result
    cut = unread("\n".join(texts), f"its {size} bytes are above the limit of {most}", most_bytes=most)
    if _is_true(result.get("isError")):
        cut["isError"] = True
    meta = result.get("_meta")
    return {**cut, "_meta": {**(meta if isinstance(meta, dict) else {}), **cut["_meta"]}}


def _with_little_structure(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result whose structured content is a text where it is long; what it is about stays as it is."""
    structured = result["structuredContent"]
    whole = json.dumps(structured, ensure_ascii=False)
    if len(whole) <= STRUCTURED_MAX_BYTES:
        return result
    content = result.get("content")
    blocks = content if isinstance(content, list) else []
    texts = [one["text"] for one in blocks if _is_text(one)]
    said = [{"type": "text", "text": text} for text in with_structured(texts, structured)]
    about = structured.get(ENTITIES) if isinstance(structured, dict) else None
    kept = {ENTITIES: about[:ENTITIES_PER_RESULT_MAX]} if isinstance(about, list) else None
    meta = result.get("_meta")
    return {
        **result,
        "content": [*said, *(one for one in blocks if not _is_text(one))],
        "structuredContent": kept,
        "_meta": {**(meta if isinstance(meta, dict) else {}), STRUCTURED: whole_characters(whole)},
    }


def _is_text(block: Any) -> bool:
    return isinstance(block, dict) and isinstance(block.get("text"), str)


def first_keys(text: str) -> dict[str, int]:
    """Return the keys of the object that a text begins with, each with the place of its value."""
    keys: dict[str, int] = {}
    depth, last = 0, ""
    for token in _TOKEN.finditer(text):
        match token[0][0]:
            case '"':
                last = token[0] if depth == 1 else ""
            case ":":
                if depth == 1 and last:
                    keys.setdefault(last[1:-1], token.end())
                last = ""
            case "{" | "[":
                depth += 1
            case _:
                depth -= 1
                if depth <= 0:
                    break
    return keys


def text_in(raw: bytes) -> str:
    """Return the text of bytes in whichever Unicode encoding, with U+FFFD for what is none."""
    encoding = json.detect_encoding(raw[:4])
    return whole_characters(raw.decode(encoding, "replace")).removeprefix("\ufeff")


def whole_characters(text: str) -> str:
    """Return a text with U+FFFD for halves of surrogate pairs, which nothing could encode."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _refusal(error: Any) -> tuple[int, str, Any]:
    if not isinstance(error, dict):
        return 0, _words(error) or NO_WORDS, None
    code, words = error.get("code"), error.get("message")
    if not isinstance(words, str) or not words:
        words = _words(error)
    words = words or NO_WORDS
    return code if isinstance(code, int) and abs(code) < 2**63 else 0, words, error.get("data")


def _value_at(text: str, at: int | None) -> Any:
    found = None if at is None else _VALUE.match(text, at)
    return None if found is None else json.loads(found[1])


def _text_block(value: Any) -> dict[str, Any]:
    return {"type": "text", "text": _words(value)}


def _words(value: Any) -> str:
    if isinstance(value, str):
        return whole_characters(value)
    if isinstance(value, dict) and isinstance(value.get("text"), str):
        return whole_characters(value["text"])
    return whole_characters(json.dumps(value, ensure_ascii=False))


def _is_true(flag: Any) -> bool:
    return flag is True or (isinstance(flag, str) and flag.lower() == "true")


def _whole_number(digits: str) -> int | str:
    return int(digits) if len(digits) < DIGITS_MAX else digits
