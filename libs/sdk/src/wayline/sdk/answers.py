"""What a tool's function returned, as an answer that the bus takes: nothing that it did becomes a failure here."""

from __future__ import annotations

import json
from typing import Any

from pydantic_core import to_jsonable_python

from wayline.contracts.bus_tools import BODY_MAX, InvokeResult

ERROR_MAX_CHARS = 8_000
"""Of a failed call, for the model: more would not help it."""
FITS_SHARE = 0.9
"""Of the length that a text should fit in: characters take different numbers of bytes."""


def answer_of(value: Any) -> InvokeResult:
    """Return a function's value as the answer of its tool: text as it is, objects as structured content."""
    if isinstance(value, InvokeResult):
        return value
    if value is None or isinstance(value, str):
        return InvokeResult(text=value or "")
    try:
        plain = to_jsonable_python(value)
        text = json.dumps(plain, ensure_ascii=False)
    except Exception as error:
        # Of any kind: a value may run code of its own to become JSON.
        return _unsendable(error)
    return InvokeResult(structured=plain) if isinstance(plain, dict) else InvokeResult(text=text)


def failure(message: str) -> InvokeResult:
    """Return the answer of a tool that could not do what it was asked."""
    return InvokeResult(error=clean(message)[:ERROR_MAX_CHARS] or "the tool failed without saying why")


def encoded(answer: InvokeResult) -> bytes:
    """Return an answer as the bus takes it: what is not text is replaced, and what is too long is cut."""
    try:
        body = _json(answer)
    except Exception as error:
        # Of any kind: content that is no JSON, which only a `Result` can hold.
        answer = _unsendable(error).model_copy(update={"cost_usd": answer.cost_usd, "error": answer.error})
        body = _json(answer)
    return body if len(body) <= BODY_MAX else _cut(answer, size=len(body))


def clean(text: str) -> str:
    """Return text without halves of surrogate pairs: nothing could encode them."""
    return text.encode("utf-8", "replace").decode()


def _json(answer: InvokeResult) -> bytes:
    try:
        return answer.model_dump_json().encode()
    except ValueError:
        plain = {name: _clean_json(getattr(answer, name)) for name in ("text", "structured", "error")}
        return answer.model_copy(update=plain).model_dump_json().encode()


def _clean_json(value: Any) -> Any:
    return json.loads(clean(json.dumps(to_jsonable_python(value), ensure_ascii=False)))


def _unsendable(error: Exception) -> InvokeResult:
    """Return the answer of a tool that did its work and whose value cannot be sent."""
    why = f"{type(error).__name__}: {error}"[:ERROR_MAX_CHARS]
    return InvokeResult(
        text=clean(f"The tool did its work: do not repeat the call. Its answer cannot be sent ({why}).")
    )


def _cut(answer: InvokeResult, *, size: int) -> bytes:
    """Shorten an answer until it fits; that it ran, what it charged and whether it failed stay as they are."""
    note = f"[The tool has run; its answer of {size} bytes was cut: the bus takes {BODY_MAX}.]"
    field = "text" if answer.error is None else "error"
    text = answer.error or answer.text or clean(json.dumps(answer.structured, ensure_ascii=False))
    while True:
        text = text[: int(len(text) * FITS_SHARE * BODY_MAX / size)]
        shown = {"text": "", "structured": None, field: f"{text}\n{note}"}
        body = _json(answer.model_copy(update=shown))
        if (size := len(body)) <= BODY_MAX:
            return body
