"""Server-sent events for browsers: how one is written, and comments that keep a quiet stream open."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import suppress
from typing import Any

from fastapi.responses import StreamingResponse

HEARTBEAT_S = 15.0
HEARTBEAT = b": alive\n\n"
RETRY = b"retry: 1000\n\n"
"""How many milliseconds a browser waits before it comes back; of its own it would wait three seconds."""


def sse(kind: str, data: dict[str, Any], *, event_id: int | None = None) -> bytes:
    """Write one event; an id is where a browser goes on after a broken connection."""
    place = "" if event_id is None else f"id: {event_id}\n"
    return f"{place}event: {kind}\ndata: {json.dumps(data)}\n\n".encode()


def stream_of(events: AsyncIterator[bytes]) -> StreamingResponse:
    """Answer with events as they come, which no proxy in between may gather."""
    return StreamingResponse(events, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


async def heartbeats(events: AsyncIterator[bytes], every_s: float = HEARTBEAT_S) -> AsyncGenerator[bytes]:
    """Yield when to come back, then events, and a comment where none has come for a while."""
    awaited: asyncio.Task[bytes] | None = None
    try:
        yield RETRY
        while True:
            awaited = awaited or asyncio.ensure_future(_next(events))
            done, _ = await asyncio.wait({awaited}, timeout=every_s)
            if not done:
                yield HEARTBEAT
                continue
            finished, awaited = awaited, None
            try:
                yield finished.result()
            except StopAsyncIteration:
                return
    finally:
        if awaited is not None:
            awaited.cancel()
            with suppress(asyncio.CancelledError, StopAsyncIteration):
                await awaited
        if closing := getattr(events, "aclose", None):
            await closing()


async def _next(events: AsyncIterator[bytes]) -> bytes:
    return await anext(events)
