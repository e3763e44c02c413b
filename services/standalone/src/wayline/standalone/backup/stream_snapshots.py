"""Snapshots of streams, by the server's own API: taken and restored in pieces, each acknowledged before more comes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import Any, Final

import orjson
from nats.aio.client import Client
from nats.errors import NoRespondersError
from nats.errors import TimeoutError as NatsTimeoutError

from wayline.chassis.connection.leaders import NO_PEERS
from wayline.standalone.backup.backup_files import Write
from wayline.standalone.errors import BackupFailed

API: Final = "$JS.API"
ANSWER_WITHIN_S: Final = 30.0
CHUNK_WITHIN_S: Final = 60.0
CHUNK_BYTES: Final = 128 * 1024
RESTORED_WITHIN_S: Final = 3_600.0
"""How long the server may take to make a stream of what it was sent."""
REPEATABLE: Final = ("STREAM.NAMES", "STREAM.INFO", "CONSUMER.LIST", "CONSUMER.RESET")
"""What may be asked twice: a cluster without a leader gives no answer."""
ONE_ANSWER_S: Final = 3.0
UNAVAILABLE: Final = 503
LEADERLESS_PAUSE_S: Final = 0.25


async def ask(nc: Client, what: str, body: Any = None, *, within_s: float = ANSWER_WITHIN_S) -> dict[str, Any]:
    """Ask JetStream's API, and again while a cluster has no leader or no place for a copy. Raises BackupFailed."""
    encoded, deadline = b"" if body is None else orjson.dumps(body), time.monotonic() + within_s
    repeatable = what.startswith(REPEATABLE)
    while True:
        try:
            reply = await nc.request(f"{API}.{what}", encoded, timeout=ONE_ANSWER_S if repeatable else within_s)
            answer = orjson.loads(reply.data)
        except (NatsTimeoutError, NoRespondersError) as error:
            if not repeatable or time.monotonic() > deadline:
                raise BackupFailed(f"the bus does not answer {what}: {type(error).__name__}. Try again.") from None
            await asyncio.sleep(LEADERLESS_PAUSE_S)
            continue
        is_early = answer.get("error", {}).get("code") == UNAVAILABLE or no_place_yet(answer)
        if not is_early or time.monotonic() > deadline:
            return _checked(what, answer)
        await asyncio.sleep(LEADERLESS_PAUSE_S)


async def stream_names(nc: Client) -> list[str]:
    """Return the names of all streams of the account."""
    names: list[str] = []
    while True:
        page = await ask(nc, "STREAM.NAMES", {"offset": len(names)})
        found = page.get("streams") or []
        names += found
        if not found or len(names) >= page["total"]:
            return names


async def stream_info(nc: Client, name: str) -> dict[str, Any]:
    """Return the configuration and the state of a stream."""
    return await ask(nc, f"STREAM.INFO.{name}")


async def durable_consumers(nc: Client, stream: str) -> list[dict[str, Any]]:
    """Return what the server says of each durable consumer of a stream."""
    found: list[dict[str, Any]] = []
    while True:
        page = await ask(nc, f"CONSUMER.LIST.{stream}", {"offset": len(found)})
        consumers = page.get("consumers") or []
        found += consumers
        if not consumers or len(found) >= page["total"]:
            return [one for one in found if one["config"].get("durable_name")]


async def take_snapshot(nc: Client, name: str, write: Write) -> dict[str, Any]:
    """Write a stream's messages, and return its configuration and state. Raises BackupFailed.

    Consumers are not in it: they may know of messages that came after the last one that is.
    """
    inbox = nc.new_inbox()
    subscription = await nc.subscribe(inbox)
    try:
        wanted = {"deliver_subject": inbox, "no_consumers": True, "chunk_size": CHUNK_BYTES}
        begun = await ask(nc, f"STREAM.SNAPSHOT.{name}", wanted)
        while True:
            try:
                chunk = await subscription.next_msg(timeout=CHUNK_WITHIN_S)
            except NatsTimeoutError:
                raise BackupFailed(f"the snapshot of stream {name} stopped. Take the backup again.") from None
            if not chunk.data:
                status = (chunk.headers or {}).get("Status", "")
                if status not in {"", "204"}:
                    why = (chunk.headers or {}).get("Description", "")
                    raise BackupFailed(f"the snapshot of stream {name} failed: {status} {why}. Take the backup again.")
                return {"config": begun["config"], "state": begun["state"]}
            await asyncio.to_thread(write, chunk.data)
            if chunk.reply:
                await nc.publish(chunk.reply, b"")
    finally:
        await subscription.unsubscribe()


async def restore_snapshot(
    nc: Client, config: dict[str, Any], state: dict[str, Any], chunks: Iterable[bytes]
) -> dict[str, Any]:
    """Make a stream of its snapshot, and return its state. Raises BackupFailed."""
    name = config["name"]
    begun = await ask(nc, f"STREAM.RESTORE.{name}", {"config": config, "state": state})
    target = begun["deliver_subject"]
    try:
        for chunk in chunks:
            for at in range(0, len(chunk), CHUNK_BYTES):
                reply = await nc.request(target, chunk[at : at + CHUNK_BYTES], timeout=CHUNK_WITHIN_S)
                if reply.data:
                    _answer(f"STREAM.RESTORE.{name}", reply.data)
        done = await nc.request(target, b"", timeout=RESTORED_WITHIN_S)
    except (NatsTimeoutError, NoRespondersError):
        raise BackupFailed(f"the bus took no more of stream {name}: see the server's log, and restore again.") from None
    return _answer(f"STREAM.RESTORE.{name}", done.data)["state"]


async def make_consumer(nc: Client, stream: str, config: dict[str, Any], *, heard: int) -> bool:
    """Make a durable consumer that goes on behind a sequence; False: this server's begins at the stream's first."""
    name = config["durable_name"]
    # As many copies as its stream has.
    made = {**config, "num_replicas": 0}
    await ask(nc, f"CONSUMER.DURABLE.CREATE.{stream}.{name}", {"stream_name": stream, "config": made})
    if not heard:
        return True
    try:
        await ask(nc, f"CONSUMER.RESET.{stream}.{name}", {"seq": heard + 1})
    except BackupFailed:
        # A server before 2.14. A service that hears a message twice does nothing the second time.
        return False
    return True


def _answer(what: str, data: bytes) -> dict[str, Any]:
    return _checked(what, orjson.loads(data))


def no_place_yet(answer: dict[str, Any]) -> bool:
    """Return whether a cluster refused for servers that have not joined it: it has begun nothing."""
    return answer.get("error", {}).get("err_code") == NO_PEERS


def _checked(what: str, answer: dict[str, Any]) -> dict[str, Any]:
    if "error" in answer:
        raise BackupFailed(f"the bus refused {what}: {answer['error'].get('description')}.")
    return answer
