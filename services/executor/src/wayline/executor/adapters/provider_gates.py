"""Whether a model may be called right now: what its provider asked for and what failed, shared by all executors."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import structlog
from nats import errors as nats_errors
from nats.aio.msg import Msg

from wayline.chassis import Bus
from wayline.chassis.providers import (
    ALL_MODELS,
    BUCKET_STREAM,
    CLAUSES,
    HOLD_MAX_S,
    Condition,
    ProviderState,
    read_state,
    subject,
)
from wayline.contracts.errors import WaylineError
from wayline.contracts.models import LEFT_ALONE_MAX, ModelLeftAlone
from wayline.executor.adapters.circuit_breaker import CircuitBreaker
from wayline.executor.adapters.provider_waits import ProviderWaits
from wayline.journal import leader_read
from wayline.llm import ModelError
from wayline.llm.labels import OWN_MAX, ModelLabels
from wayline.llm.prices import LOCAL
from wayline.telemetry import metrics
from wayline.telemetry.bounded_labels import BoundedLabels

log = structlog.get_logger()

LOOK_MAX_S = 0.5
"""How long a call waits to be told what others know of its model; it goes on without."""
GATES_MAX = 4_096
TELL_WELL_EVERY_S = 5.0
"""How often an executor whose calls are answered says so: jobs that others have parked for the model go on then."""

BROKEN = frozenset({"server_error", "overloaded", "connection", "timeout", "stream_cut"})
"""Errors that say that the provider is not well; whatever else it answers, it is there."""


@dataclass(frozen=True, slots=True)
class GateClosed:
    """Why a model may not be called, and when to ask again."""

    wait_s: float
    why: str


@dataclass(slots=True)
class GatePass:
    """One call that a gate has let through, and what it has told of its provider once it has ended."""

    name: str
    error: ModelError | None = None
    spoke: bool = False


@dataclass(slots=True)
class _Gate:
    breaker: CircuitBreaker = field(default_factory=CircuitBreaker)
    held_until: float = 0.0
    looked: bool = False
    name: str = ""
    """`provider/model`; empty: others have told of it, and it was not called here."""
    told_well_at: float = 0.0

    def may_tell_well(self, now: float) -> bool:
        """Return whether nothing else is known of the model, and it was not said for a while."""
        return self.breaker.closed and now >= self.held_until and now - self.told_well_at > TELL_WELL_EVERY_S


class ProviderGates:
    """One gate a model: local failures and those of other executors, in the bucket PROVIDERS and at once.

    A key is read once, when its model is first called; a local model has no gate.
    """

    def __init__(self, bus: Bus, *, clock: Callable[[], float] = time.time) -> None:
        self._bus = bus
        self.waits = ProviderWaits(bus)
        self._clock = clock
        self._gates: dict[str, _Gate] = {}
        self._label = ModelLabels(BoundedLabels(most=OWN_MAX))

    async def start(self) -> None:
        self._heard = await self._bus.nc.subscribe(ALL_MODELS, cb=self._on_word)
        self._bus.reconnected.append(self._look_again)

    async def stop(self, grace_s: float) -> None:
        with suppress(nats_errors.Error):
            await self._heard.unsubscribe()
        await self.waits.stop()

    async def enter(self, name: str) -> GateClosed | None:
        """Return why a model may not be called, and for how long; None: call it, and `leave` once when that is over."""
        if _local(name):
            return None
        gate = self._gate(subject(name))
        gate.name = name
        if not gate.looked:
            await self._look(name, gate)
        now = self._clock()
        if now < gate.held_until:
            return GateClosed(gate.held_until - now, CLAUSES[Condition.HELD])
        wait_s = gate.breaker.enter(now)
        return GateClosed(wait_s, CLAUSES[Condition.FAILING]) if wait_s else None

    def left_alone(self) -> tuple[ModelLeftAlone, ...]:
        """Return the models that are not called now, of those that were called here."""
        now = self._clock()
        found: list[ModelLeftAlone] = []
        for gate in self._gates.values():
            open_s, held_s = gate.breaker.open_for(now), gate.held_until - now
            if gate.name and held_s > 0:
                found.append(ModelLeftAlone(model=gate.name, why="held", retry_after_s=max(held_s, open_s or 0.0)))
            elif gate.name and open_s is not None:
                found.append(ModelLeftAlone(model=gate.name, why="failing", retry_after_s=open_s))
        return tuple(found[:LEFT_ALONE_MAX])

    async def end(self, gate_pass: GatePass) -> None:
        """Tell a gate how the call ended that it let through."""
        await self.leave(gate_pass.name, error=gate_pass.error, spoke=gate_pass.spoke)

    async def leave(self, name: str, *, error: ModelError | None = None, spoke: bool = False) -> None:
        """Take how a call ended: in an error, with a message (`spoke`), or cut off by ourselves."""
        if _local(name):
            return
        gate, now = self._gate(subject(name)), self._clock()
        if error is not None and error.after_s and error.retryable:
            gate.held_until = max(gate.held_until, now + min(error.after_s, HOLD_MAX_S))
            await self._tell(name, ProviderState(until=gate.held_until, condition=Condition.HELD))
        if error is not None and error.code in BROKEN:
            until = gate.breaker.failed(now)
            if until is not None:
                metrics.breakers_opened.labels(self._label(name)).inc()
                log.warning("model left alone: it keeps failing", model=name, why=str(error))
                await self._tell(name, ProviderState(until=until, condition=Condition.FAILING))
        elif error is None and not spoke:
            gate.breaker.left()
        else:
            await self.well(name)

    async def well(self, name: str) -> None:
        """Take that a model has begun to answer: nobody need wait for the end of a probe that writes for minutes."""
        if _local(name):
            return
        now = self._clock()
        gate = self._gate(subject(name))
        self.waits.wake(subject(name))
        # Also where nothing was wrong here: others may have parked jobs for it.
        if gate.breaker.succeeded(now) or gate.may_tell_well(now):
            gate.told_well_at = now
            await self._tell(name, ProviderState(until=now, condition=Condition.WELL))

    def _gate(self, key: str) -> _Gate:
        gate = self._gates.get(key)
        if gate is None:
            if len(self._gates) >= GATES_MAX:
                self._gates.clear()
            gate = self._gates[key] = _Gate()
        return gate

    def _look_again(self) -> None:
        for gate in self._gates.values():
            gate.looked = False

    async def _look(self, name: str, gate: _Gate) -> None:
        """Read what was published before we listened. A model is not kept from its call by a bus that is slow."""
        gate.looked = True
        try:
            async with asyncio.timeout(LOOK_MAX_S):
                newest = await leader_read(self._bus, BUCKET_STREAM, subject(name))
        except (TimeoutError, WaylineError) as error:
            log.warning("not told what others know of a model", model=name, error=str(error))
            return
        state = None if newest is None else read_state(newest.body)
        if state is not None:
            self._take(gate, state)

    async def _on_word(self, message: Msg) -> None:
        state = read_state(message.data)
        if state is None:
            return
        self._take(self._gate(message.subject), state)
        if state.condition is Condition.WELL:
            self.waits.wake(message.subject)

    def _take(self, gate: _Gate, state: ProviderState) -> None:
        now = self._clock()
        until = min(state.until, now + HOLD_MAX_S)
        if state.condition is Condition.WELL:
            gate.breaker.close()
        elif until <= now:
            return
        elif state.condition is Condition.FAILING:
            gate.breaker.open(until)
        else:
            gate.held_until = max(gate.held_until, until)

    async def _tell(self, name: str, state: ProviderState) -> None:
        """Say it without waiting for an ack: a state that is lost costs another executor one call."""
        with suppress(nats_errors.Error):
            await self._bus.nc.publish(subject(name), state.to_wire())


def _local(name: str) -> bool:
    return name.partition("/")[0] in LOCAL
