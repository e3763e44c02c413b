"""Which models had better not be given a job right now, as the executors say who call them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from math import ceil

import structlog
from nats import errors as nats_errors
from nats.aio.msg import Msg
from nats.js import errors as js_errors

from wayline.chassis import Bus
from wayline.chassis.providers import (
    ALL_MODELS,
    BUCKET_STREAM,
    HOLD_MAX_S,
    Condition,
    ProviderState,
    read_state,
    subject,
)

log = structlog.get_logger()

WAIT_S = 10.0
"""A model that asked to be left alone for no longer gets its jobs all the same: an executor waits so long for it."""
KEYS_MAX = 1_000
"""Models whose last state is read at the start; of the others a router hears when they speak again."""
READ_MAX_S = 5.0


class Availability:
    """The last state of each model, forgotten when its time is over."""

    def __init__(self, bus: Bus, *, clock: Callable[[], float] = time.time) -> None:
        self._bus = bus
        self._clock = clock
        self._states: dict[str, ProviderState] = {}
        self._reading: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._heard = await self._bus.nc.subscribe(ALL_MODELS, cb=self._on_word)
        self._bus.reconnected.append(self._read_again)
        await self._read()

    async def stop(self, grace_s: float) -> None:
        if self._reading is not None:
            self._reading.cancel()
        with suppress(nats_errors.Error):
            await self._heard.unsubscribe()

    def away(self, names: Iterable[str]) -> Mapping[str, str]:
        """Return those of the given models that are to be passed over, each with why: a clause about the model."""
        if not self._states:
            return {}
        now = self._clock()
        self._states = {key: state for key, state in self._states.items() if state.until > now}
        found: dict[str, str] = {}
        for name in names:
            state = self._states.get(subject(name))
            if state is None:
                continue
            left_s = min(state.until - now, HOLD_MAX_S)
            if state.condition is Condition.FAILING:
                found[name] = state.clause
            elif left_s > WAIT_S:
                found[name] = f"{state.clause} for {ceil(left_s)} s"
        return found

    async def _on_word(self, message: Msg) -> None:
        self._take(message.subject, message.data)

    def _take(self, key: str, body: bytes) -> None:
        state = read_state(body)
        if state is None:
            return
        known = self._states.get(key)
        if state.condition is not Condition.WELL:
            self._states[key] = state
        elif known is not None and known.condition is Condition.FAILING:
            # Only that is over: what a provider asked for still holds.
            del self._states[key]

    def _read_again(self) -> None:
        self._reading = asyncio.create_task(self._read(), name="availability of models")

    async def _read(self) -> None:
        """Read what was stored before we listened. A router does without: executors look again before each call."""
        try:
            async with asyncio.timeout(READ_MAX_S):
                after = 1
                for _ in range(KEYS_MAX):
                    message = await self._bus.js.get_msg(BUCKET_STREAM, seq=after, subject=ALL_MODELS, next=True)
                    self._take(message.subject or "", message.data or b"")
                    after = (message.seq or after) + 1
        except js_errors.NotFoundError:
            return
        except (TimeoutError, nats_errors.Error) as error:
            log.warning("not told which models are away", error=str(error))
