"""Which jobs have to ask before they run: the pauses and limits that people set, as each process knows them.

The router keeps them in its tables and writes each to a key of the bucket CONTROLS, where every process hears it. What
is known here only says whether a job has to ask: the router decides, by its tables.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import structlog
from nats import errors as nats_errors
from nats.aio.msg import Msg
from nats.js import api
from nats.js import errors as js_errors
from pydantic import ValidationError

from wayline.chassis.concurrency.periodic import Periodic
from wayline.chassis.connection.bus import Bus
from wayline.chassis.providers import key_token
from wayline.chassis.topology import CONTROLS
from wayline.contracts.run_controls import EACH, Pause, PauseKind, RunningLimitInForce, Whose

log = structlog.get_logger()

ALL_CONTROLS = f"$KV.{CONTROLS}.>"
BUCKET_STREAM = f"KV_{CONTROLS}"
LOOK_EVERY_S = 10.0
"""What is published is heard at once; this finds what was lost on the way."""
READ_MAX_S = 5.0
ENDED_KEPT_S = 60.0
"""How long the word is stored that a control was taken away."""
NONE = b""
"""The value of a control that has been taken away."""


def pause_subject(kind: PauseKind, tenant: str, name: str) -> str:
    """Return the subject under which a pause is stored."""
    return f"$KV.{CONTROLS}.pause.{kind}.{tenant or '_'}.{key_token(name)}"


def limit_subject(tenant: str, whose: Whose, name: str) -> str:
    """Return the subject under which a limit on running jobs is stored."""
    return f"$KV.{CONTROLS}.limit.{tenant}.{whose}.{key_token(name)}"


class Controls:
    """The pauses and limits in force, as this process has heard of them."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._pauses: dict[str, Pause] = {}
        self._limits: dict[str, RunningLimitInForce] = {}
        self._limited: set[str] = set()
        self._heard_lately: set[str] = set()
        """Subjects that were heard since the present look at what is stored began: what it finds of them is older."""
        self._periodic = Periodic("pauses and limits", self.read, every_s=LOOK_EVERY_S)

    async def start(self) -> None:
        """Listen, and read what was set before: nothing is run here until that is known."""
        self._heard = await self._bus.nc.subscribe(ALL_CONTROLS, cb=self._on_word)
        self._bus.reconnected.append(self._periodic.now)
        await self.read()
        await self._periodic.start()

    async def stop(self, grace_s: float) -> None:
        await self._periodic.stop(grace_s)
        with suppress(nats_errors.Error):
            await self._heard.unsubscribe()

    @property
    def any(self) -> bool:
        """Return whether anything is paused or limited anywhere."""
        return bool(self._pauses or self._limits)

    def limits(self, tenant: str) -> bool:
        """Return whether any jobs of a tenant are limited."""
        return tenant in self._limited

    def concern(
        self, tenant: str, *, lane: str, agent: str, user_id: str | None, key_id: str | None, first: bool
    ) -> bool:
        """Return whether a job has to ask before it goes on; not the `first` time, only for a pause at once."""
        if self._pauses and any(
            (pause := self._pauses.get(subject)) is not None and (pause.now or first)
            for subject in (
                pause_subject("tenant", tenant, tenant),
                pause_subject("lane", "", lane),
                pause_subject("agent", tenant, agent),
            )
        ):
            return True
        if not first or tenant not in self._limited:
            return False
        named: tuple[tuple[Whose, str | None], ...] = (("agent", agent), ("user", user_id), ("key", key_id))
        return any(
            limit_subject(tenant, whose, one) in self._limits
            for whose, name in named
            if name is not None
            for one in (name, EACH)
        )

    async def read(self) -> None:
        """Read what is stored. A process whose bus does not answer goes on with what it knows."""
        self._heard_lately.clear()
        found = set[str]()
        try:
            async with asyncio.timeout(READ_MAX_S):
                async for message in self._messages():
                    subject = message.subject or ""
                    found.add(subject)
                    if subject not in self._heard_lately:
                        self._take(subject, message.data or NONE)
            for gone in (self._pauses.keys() | self._limits.keys()) - found - self._heard_lately:
                self._take(gone, NONE)
        except (TimeoutError, nats_errors.Error) as error:
            log.warning("pauses and limits were not read", error=str(error) or type(error).__name__)
        self._limited = {limit.tenant for limit in self._limits.values()}

    async def _messages(self) -> AsyncIterator[api.RawStreamMsg]:
        """Yield what is stored, one message a subject."""
        after = 1
        with suppress(js_errors.NotFoundError):
            while True:
                message = await self._bus.js.get_msg(BUCKET_STREAM, seq=after, subject=ALL_CONTROLS, next=True)
                yield message
                after = (message.seq or after) + 1

    async def _on_word(self, message: Msg) -> None:
        self._heard_lately.add(message.subject)
        self._take(message.subject, message.data)
        self._limited = {limit.tenant for limit in self._limits.values()}

    def _take(self, subject: str, body: bytes) -> None:
        kind = subject.split(".")[2]
        self._pauses.pop(subject, None)
        self._limits.pop(subject, None)
        try:
            if body and kind == "pause":
                self._pauses[subject] = Pause.model_validate_json(body)
            elif body and kind == "limit":
                self._limits[subject] = RunningLimitInForce.model_validate_json(body)
        except ValidationError as error:
            # Of a newer build, which answers for it.
            log.warning("a pause or limit cannot be read", subject=subject, error=str(error))

    async def publish(self, subject: str, value: Pause | RunningLimitInForce | None) -> None:
        """Tell every process of a control; None: it is taken away. Raises the errors of the bus's client."""
        body = NONE if value is None else value.model_dump_json().encode()
        await self._bus.js.publish(subject, body, stream=BUCKET_STREAM)

    async def stored(self) -> dict[str, bytes]:
        """Return the values that are stored, by subject."""
        return {message.subject or "": message.data async for message in self._messages() if message.data}

    async def clear_ended(self, *, after_s: float = ENDED_KEPT_S) -> None:
        """Delete the words that a control was taken away: every process reads all that is stored, again and again.

        A process that did not hear one finds at its next look that the control is gone; until then it asks in vain.
        """
        before = datetime.now(UTC) - timedelta(seconds=after_s)
        ended = [
            (message.subject, message.seq)
            async for message in self._messages()
            if not message.data and message.seq and message.time is not None and message.time < before
        ]
        for subject, sequence in ended:
            # Not what was set anew since: that has a later sequence.
            await self._bus.js.purge_stream(BUCKET_STREAM, seq=sequence + 1, subject=subject)
