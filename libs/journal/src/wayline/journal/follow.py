"""Follow a job as it happens: what is in the log first, then what comes, with no gap and nothing twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import TypeAlias

import structlog
from nats.aio.msg import Msg

from wayline.chassis import Bus
from wayline.contracts.events import TERMINAL_TYPES, Event, read_event
from wayline.contracts.jobs import Delta, QueuePlace
from wayline.journal.log import JobLog, bulk_read, leader_read, note_foreign
from wayline.journal.pieces import Pieces
from wayline.journal.record import decode, is_record

log = structlog.get_logger()

IDLE_S = 15.0
"""After so long without news the log's tail is read again: a lost live message must not end in silence."""
WAITING_MAX = 1_000
"""Live messages held for a reader; past it they are dropped and the log is read instead."""

News: TypeAlias = AsyncGenerator[Event | Delta | QueuePlace | None, None]
"""What a follower is told: events in their order, pieces of text between them, None where nothing happens for long."""
Tell: TypeAlias = Callable[[QueuePlace], None]
Beside: TypeAlias = Callable[[Tell], AbstractContextManager[None]]
"""Tells a follower, while it is entered, what is in no log."""


async def follow(
    bus: Bus, tenant: str, job_id: str, after_seq: int = 0, *, beside: Beside | None = None, calls: bool = False
) -> News:
    """Yield every event after `after_seq` once and in order, deltas between them, None now and then when idle.

    A delta of a model call that failed or ended is dropped: deltas travel beside the log and may come late. Those that
    say how far a tool call is come only with `calls`. What `beside` tells is yielded as it comes.
    Ends after the terminal event; on a job that has ended it tells what is left of the story and ends. A job without a
    log is waited for.
    """
    waiting: asyncio.Queue[Msg | QueuePlace] = asyncio.Queue(WAITING_MAX)
    overrun = asyncio.Event()

    def put(message: Msg | QueuePlace) -> None:
        if waiting.full():
            # A slow reader must not hold memory: it gets the events from the log, the deltas are gone.
            while not waiting.empty():
                waiting.get_nowait()
            overrun.set()
        waiting.put_nowait(message)

    async def hold(message: Msg) -> None:
        put(message)

    live = await bus.nc.subscribe(f"live.{tenant}.{job_id}", cb=hold)
    deltas = await bus.nc.subscribe(f"deltas.{tenant}.{job_id}", cb=hold)
    try:
        await bus.settled()
        with beside(put) if beside else nullcontext():
            async for news in _Follower(bus, tenant, job_id, after_seq, calls=calls).run(waiting, overrun):
                yield news
    finally:
        for subscription in (live, deltas):
            with suppress(Exception):
                await subscription.unsubscribe()


class _Follower:
    """Where one reader is: the last stream sequence it has seen and the last event it has told."""

    def __init__(self, bus: Bus, tenant: str, job_id: str, after_seq: int, *, calls: bool) -> None:
        self._bus = bus
        self._calls = calls
        self._log = JobLog(bus, tenant, job_id)
        self._sequence = 0
        self._told = after_seq
        self._ended = False
        self._pieces = Pieces()

    async def run(self, waiting: asyncio.Queue[Msg | QueuePlace], overrun: asyncio.Event) -> News:
        async for event in self._refill():
            yield event
        while not self._ended:
            try:
                async with asyncio.timeout(IDLE_S):
                    message = await waiting.get()
            except TimeoutError:
                async for event in self._refill():
                    yield event
                yield None
                continue
            if overrun.is_set():
                overrun.clear()
                async for event in self._refill():
                    yield event
            if isinstance(message, QueuePlace):
                yield message
                continue
            if message.subject.startswith("deltas."):
                delta = Delta.from_wire(message.data, message.subject)
                if self._calls if delta.tool is not None else self._pieces.wants(delta):
                    yield delta
                continue
            async for event in self._hear(message):
                yield event

    async def _hear(self, message: Msg) -> AsyncIterator[Event]:
        headers = message.headers or {}
        # The server says these of what it republishes; what has no place in the log is none of it.
        sequence, previous = int(headers.get("Nats-Sequence", 0)), int(headers.get("Nats-Last-Sequence", 0))
        if sequence <= self._sequence:
            return
        if previous != self._sequence:
            async for event in self._refill():
                yield event
            return
        if not is_record(headers):
            self._pass_over(sequence)
            return
        for event in self._tell(await self._bus.body(message, tenant=self._log.tenant), sequence):
            yield event

    def _pass_over(self, sequence: int) -> None:
        note_foreign(self._log.subject, sequence)
        self._sequence = sequence

    async def _refill(self) -> AsyncIterator[Event]:
        """Yield from the log what is newer than the last record seen, as far as the leader knows."""
        last = await leader_read(self._bus, "EVENTS", self._log.subject)
        if last is None or last.sequence <= self._sequence:
            return
        async for message in bulk_read(
            self._bus, "EVENTS", self._log.subject, after=self._sequence, upto=last.sequence
        ):
            sequence = int((message.headers or {})["Nats-Sequence"])
            if not is_record(message.headers):
                self._pass_over(sequence)
                continue
            for event in self._tell(await self._bus.body(message, tenant=self._log.tenant), sequence):
                yield event

    def _tell(self, body: bytes, sequence: int) -> list[Event]:
        self._sequence = sequence
        events = [read_event(value) for value in decode(body)]
        for event in events:
            self._pieces.hear(event)
        self._ended = self._ended or any(event.type in TERMINAL_TYPES for event in events)
        new = [event for event in events if event.seq > self._told]
        if new:
            self._told = new[-1].seq
        return new
