"""Bring a restored work queue to the sequence that it had: those that tables and logs know are then not given again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from wayline.chassis import Bus
from wayline.contracts.base import Message
from wayline.standalone.backup.stream_snapshots import ask, stream_info
from wayline.standalone.errors import BackupFailed

AT_ONCE: Final = 500
"""Fillers that are in the queue at the same time: below what a queue takes of one subject."""
NO_LIMITS: Final = {"max_bytes": -1, "max_msgs": -1}
"""Of a queue while it is filled. What one subject may hold stays: to lower that again would drop messages."""
NOBODY: Final = "-"
"""A word of a subject that no tenant can be."""


async def fill_queue(bus: Bus, stream: str, upto: int, placed: Mapping[int, Message] | None = None) -> int:
    """Advance a queue to a last sequence; messages are put at their own sequences, which are free.

    Returns how many were put. Nobody may read or write the queue meanwhile. Raises BackupFailed.
    """
    placed = placed or {}
    info = await stream_info(bus.nc, stream)
    config, begin = info["config"], info["state"]["last_seq"]
    subject = next((one for one in config.get("subjects") or () if "*" in one), None)
    if subject is None or begin >= upto:
        return 0
    # One that is full would refuse fillers, or drop what it holds for them.
    await ask(bus.nc, f"STREAM.UPDATE.{stream}", {**config, **NO_LIMITS})
    try:
        put = await _advance(bus, stream, subject.replace("*", NOBODY), begin=begin, upto=upto, placed=placed)
    finally:
        await ask(bus.nc, f"STREAM.UPDATE.{stream}", config)
    last = (await stream_info(bus.nc, stream))["state"]["last_seq"]
    if last != upto:
        raise BackupFailed(f"{stream} is at {last} and not at {upto}: stop all services, and restore again.")
    return put


async def _advance(bus: Bus, stream: str, filler: str, *, begin: int, upto: int, placed: Mapping[int, Message]) -> int:
    """Put fillers and messages into a queue until it is at a sequence; only the messages stay."""
    at, put, fillers = begin, 0, 0
    while at < upto:
        at += 1
        message = placed.get(at)
        if message is not None:
            ack = await bus.publish(message, msg_id=f"restored/{stream}/{at}")
            if ack.seq != at:
                raise BackupFailed(f"another process writes into {stream}: stop all services, and restore again.")
            put += 1
            continue
        fillers += 1
        if fillers < AT_ONCE and at < upto:
            await bus.nc.publish(filler, b"")
            continue
        # The ack says that those before it are stored, too.
        await bus.js.publish(filler, b"")
        await bus.js.purge_stream(stream, subject=filler)
        fillers = 0
    await bus.js.purge_stream(stream, subject=filler)
    return put
