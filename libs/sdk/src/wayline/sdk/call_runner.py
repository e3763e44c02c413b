"""Runs the calls of a service's tools beside each other, and answers each of them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from faststream.nats import NatsBroker, NatsMessage
from nats import errors as nats_errors
from opentelemetry import trace
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from wayline.contracts import headers as h
from wayline.contracts.bus_tools import OUTCOME_UNKNOWN, InvokeResult, InvokeTool, StopInvocation
from wayline.contracts.errors import InvalidMessage, Unavailable, WaylineError
from wayline.contracts.tools import Effect
from wayline.sdk.answers import ERROR_MAX_CHARS, clean, encoded, failure
from wayline.sdk.call import Call, NoteProgress
from wayline.sdk.daemon_threads import DaemonThreads
from wayline.sdk.errors import TryLater
from wayline.sdk.functions import ToolFunction
from wayline.sdk.heartbeats import Heartbeats

log = logging.getLogger("wayline.sdk")
tracer = trace.get_tracer("wayline.sdk")

EFFECTS_OF_ONE_CALL = frozenset({Effect.ONCE, Effect.RECONCILE})
"""Of these only what their tool says itself is known: whatever else it raises may come after the effect."""


class OutcomeUnknown(WaylineError):
    """Nobody knows what the tool did."""

    code = OUTCOME_UNKNOWN


@dataclass(frozen=True)
class Incoming:
    """A call as it came."""

    body: bytes
    subject: str
    reply: str
    headers: dict[str, str]

    @classmethod
    async def decode(cls, message: NatsMessage) -> Incoming:
        """Take what is needed of a message of the broker."""
        raw = message.raw_message
        return cls(raw.data, raw.subject, raw.reply, dict(raw.headers or {}))


class CallRunner:
    """Runs at most so many calls at once, and sends heartbeats while they run."""

    def __init__(
        self, service: str, functions: Mapping[str, ToolFunction], broker: NatsBroker, *, calls_max: int
    ) -> None:
        self._service = service
        self._functions = functions
        self._broker = broker
        self._calls_max = calls_max
        self._threads = DaemonThreads()
        self._running: set[asyncio.Task[None]] = set()
        self._signals: dict[str, set[asyncio.Event]] = {}
        """What tells calls that they were cancelled, by their key: an attempt may run beside the one before it."""

    async def on_call(self, incoming: Any) -> None:
        """Begin a call; it runs beside the subscription, which would take one after the other."""
        task = asyncio.create_task(self._answer(incoming), name=f"a call of {self._service}")
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def on_stop(self, incoming: Any) -> None:
        """Tell a call that it was cancelled, where it runs here."""
        self.stop(StopInvocation.from_wire(incoming.body, incoming.subject).key)

    def stop(self, key: str) -> None:
        """Tell the calls with a key that they were cancelled, where they run here."""
        for signal in self._signals.get(key, ()):
            signal.set()

    async def drain(self, grace_s: float) -> None:
        """End the calls that run, for as long as the grace lasts."""
        if not self._running:
            return
        _, late = await asyncio.wait(self._running, timeout=grace_s)
        for task in late:
            log.error("%s did not end within %s s", task.get_name(), grace_s)
            task.cancel()

    async def _answer(self, incoming: Incoming) -> None:
        try:
            body, headers = encoded(await self._result(incoming)), None
        except TimeoutError:
            # Nobody waits any more, and whether the tool acted is not known: no answer says so.
            return log.error("a call of %s took longer than its tool may", self._service)
        except WaylineError as error:
            body, headers = error.problem().model_dump_json().encode(), {h.ERROR: error.code}
        await self._publish(incoming.reply, body, headers)

    async def _result(self, incoming: Incoming) -> InvokeResult:
        """Run the tool of a call. Raises Unavailable where it does not begin."""
        invocation = InvokeTool.from_wire(incoming.body, incoming.subject)
        self._require_room(invocation)
        heartbeats = Heartbeats()
        parent = TraceContextTextMapPropagator().extract(incoming.headers)
        with tracer.start_as_current_span(f"tools/call {invocation.tool}", parent, trace.SpanKind.SERVER):
            publish = partial(self._publish, incoming.reply)
            beating = asyncio.create_task(heartbeats.send(publish), name=f"heartbeats of {invocation.tool}")
            try:
                return await self.run(invocation, heartbeats.note)
            finally:
                beating.cancel()

    async def run(self, invocation: InvokeTool, note_progress: NoteProgress) -> InvokeResult:
        """Run the tool of a call, for as long as its caller waits.

        Raises Unavailable where it does not begin, OutcomeUnknown where it broke off, and TimeoutError.
        """
        tool = self._tool_of(invocation)
        signal = asyncio.Event()
        self._signals.setdefault(invocation.key, set()).add(signal)
        call = Call(
            key=invocation.key,
            tenant=invocation.tenant,
            job_id=invocation.job_id,
            step=invocation.step,
            user_id=invocation.user_id,
            deadline=invocation.deadline,
            note_progress=note_progress,
            cancel_signal=signal,
        )
        work = tool.reconcile(call) if invocation.reconcile else tool.run(invocation.arguments, call, self._threads)
        try:
            async with asyncio.timeout(invocation.timeout_s):
                return await self._awaited(work, tool, is_question=invocation.reconcile)
        finally:
            # Also for a thread, which goes on when nobody waits for it any more.
            signal.set()
            self._signals[invocation.key].discard(signal)
            if not self._signals[invocation.key]:
                del self._signals[invocation.key]

    def _require_room(self, invocation: InvokeTool) -> None:
        """Raise Unavailable where a call must not begin now."""
        if len(self._running) + self._threads.abandoned > self._calls_max:
            raise Unavailable(self._service, detail=f"it runs {self._calls_max} calls, the most it takes")
        if datetime.now(UTC) >= invocation.deadline:
            raise Unavailable(self._service, detail="the call came after its deadline")

    def _tool_of(self, invocation: InvokeTool) -> ToolFunction:
        """Return the tool that a call is for. Raises Unavailable where it must not begin here, or InvalidMessage."""
        tool = self._functions.get(invocation.tool)
        if tool is None:
            raise Unavailable(f"{self._service}'s tool {invocation.tool}", detail="this instance does not offer it")
        if invocation.schema_sha256 not in ("", tool.schema_sha256):
            raise Unavailable(
                f"{self._service}'s tool {invocation.tool}", detail="this instance has another version of it"
            )
        if invocation.reconcile and tool.outcome is None:
            raise InvalidMessage(schema=InvokeTool.schema_id(), reason=f"{invocation.tool} is not of effect reconcile")
        return tool

    async def _awaited(
        self, work: Coroutine[Any, Any, InvokeResult], tool: ToolFunction, *, is_question: bool
    ) -> InvokeResult:
        """Return a tool's answer.

        Raises Unavailable where it has not begun, and OutcomeUnknown where it may have acted before it broke off.
        """
        name = tool.offered.name
        try:
            return await work
        except TryLater as error:
            raise Unavailable(f"{self._service}'s tool {name}", detail=clean(str(error))[:ERROR_MAX_CHARS]) from None
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and _is_cancelled():
                raise
            log.exception("the tool %s failed", name)
            if tool.offered.effect in EFFECTS_OF_ONE_CALL and not is_question:
                raise OutcomeUnknown(f"the tool broke off ({type(error).__name__})") from None
            return failure(f"the tool failed ({type(error).__name__})")

    async def _publish(self, subject: str, body: bytes, headers: dict[str, str] | None) -> None:
        try:
            await (await self._broker.connect()).publish(subject, body, headers=headers)
        except nats_errors.Error as error:
            log.error("an answer of %s was not sent: %s", self._service, error)


def _is_cancelled() -> bool:
    """Return whether the call itself is cancelled, and not only something that its tool awaited."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
