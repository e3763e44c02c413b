"""The events of a stream (`text/event-stream`) whose data is JSON."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable
from contextlib import aclosing, suppress
from typing import Any

import orjson

from wayline.llm.lines import lines
from wayline.llm.model import ModelError

DONE = b"[DONE]"


class _Chunks:
    """Bytes as they arrive, in the shape that `lines` reads."""

    def __init__(self, chunks: AsyncIterable[bytes]) -> None:
        self._chunks = chunks

    def iter_any(self) -> AsyncIterable[bytes]:
        return self._chunks


async def events(chunks: AsyncIterable[bytes]) -> AsyncGenerator[dict[str, Any]]:
    """Each event's data once it is whole, with the event's name as its `type` where it has none of its own.

    Data that is no JSON object is no event. The last one may lack its blank line, and is none if it was cut short.
    """
    name, data = b"", list[bytes]()
    async with aclosing(lines(_Chunks(chunks))) as arriving:
        async for each in arriving:
            line = each.rstrip(b"\r")
            if line.startswith(b"data:"):
                data.append(line[5:].removeprefix(b" "))
            elif line.startswith(b"event:"):
                name = line[6:].strip()
            elif not line:
                if data and (event := _read(b"\n".join(data), name)):
                    yield event
                name, data = b"", []
    last = None
    with suppress(ModelError):
        last = _read(b"\n".join(data), name) if data else None
    if last:
        yield last


def _read(data: bytes, name: bytes) -> dict[str, Any] | None:
    if data.strip() == DONE:
        return None
    try:
        event = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        said = data[:200].decode(errors="replace")
        raise ModelError("unreadable", f"an event is no JSON: {said}", retryable=True, billable=True) from error
    if not isinstance(event, dict):
        return None
    event.setdefault("type", name.decode(errors="replace"))
    return event
