"""The calls that run in this process: joined by their key, answered in time, stopped when asked."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import structlog

from wayline.chassis.concurrency.awaited_tasks import ended_within
from wayline.contracts.errors import Unavailable, WaylineError
from wayline.contracts.nearest import nearest_names
from wayline.contracts.tools import CallTool, Effect, ToolProgress, ToolReply
from wayline.guarded_http import look_up_for
from wayline.telemetry import Telemetry
from wayline.tool_registry.calls.bound_tool import BoundTool
from wayline.tool_registry.calls.effect_call import EffectCall
from wayline.tool_registry.calls.kept_answers import CancelledKeys, KeptAnswers
from wayline.tool_registry.calls.ledger import Ledger
from wayline.tool_registry.calls.read_call import ReadCall
from wayline.tool_registry.calls.results import failed
from wayline.tool_registry.calls.stop_reason import StopReason
from wayline.tool_registry.calls.tool_servers import NEEDS_LOGIN, NamedServer, ToolServers
from wayline.tool_registry.calls.void_call import VoidCall
from wayline.tool_registry.definitions.arguments import Arguments
from wayline.tool_registry.errors import ToolKeyConflict
from wayline.tool_registry.settings import Settings

log = structlog.get_logger()

RECORD_S = 5.0
"""How long stopped calls may take to write down what became of them."""


class ToolCall(Protocol):
    """One call on its way to an answer."""

    async def reply(self) -> ToolReply: ...

    def stop(self, reason: StopReason) -> None: ...


@dataclass
class RunningCall:
    """A call under way, and how many callers wait for it."""

    tenant: str
    content_hash: str
    """Of what it was asked for."""
    task: asyncio.Task[ToolReply] | None = None
    call: ToolCall | None = None
    effect: Effect = Effect.ONCE
    server: NamedServer | None = None
    """Where it runs; None: the tool is not known yet."""
    waiting: int = 0
    progress: ToolProgress | None = None
    """How far it is, as its server said last."""
    reason: StopReason | None = None

    @property
    def runs(self) -> bool:
        """Return whether it has not ended: an answer that is kept for its caller runs no more."""
        return self.task is not None and not self.task.done()

    def stop(self, reason: StopReason) -> None:
        self.reason = reason
        if self.call is not None:
            self.call.stop(reason)

    def cancel(self, key: str) -> None:
        """Stop it because its job ends, and tell its server."""
        self.stop(StopReason.CANCELLED)
        if self.server is not None:
            self.server.tell_cancelled(key)


class RunningCalls:
    """Runs each key once in this process, however often it is requested."""

    def __init__(
        self, *, servers: ToolServers, ledger: Ledger, arguments: Arguments, telemetry: Telemetry, settings: Settings
    ) -> None:
        self._servers = servers
        self._ledger = ledger
        self._arguments = arguments
        self._telemetry = telemetry
        self._settings = settings
        self._running: dict[str, RunningCall] = {}
        self._of_tenant = Counter[str]()
        """How many calls of each tenant have begun, and have not been heard to end."""
        self._cancelled = CancelledKeys()
        self._kept = KeptAnswers()
        self._stopping = False

    async def start(self) -> None:
        await self._servers.start()

    async def stop(self, grace_s: float) -> None:
        """Begin nothing more, let what runs end, write down what had to be cut, leave the servers."""
        self._stopping = True
        if tasks := self._tasks():
            await asyncio.wait(tasks, timeout=grace_s)
        for running in list(self._running.values()):
            running.stop(StopReason.STOPPING)
        if tasks := self._tasks():
            await asyncio.wait(tasks, timeout=RECORD_S)
        await self._servers.stop()

    async def call(self, ask: CallTool) -> ToolReply:
        """Return the answer to a call, or `in_progress` once the caller has waited long enough.

        Raises ToolKeyConflict where the key stands for a call with other content.
        """
        content_hash = ask.content_hash()
        running = self._running.get(ask.key) or self._begin(ask, content_hash)
        if running.content_hash != content_hash:
            raise ToolKeyConflict(key=ask.key)
        assert running.task is not None
        running.waiting += 1
        try:
            ended = await ended_within(running.task, self._settings.answer_within_s)
        finally:
            running.waiting -= 1
        if ended:
            return running.task.result()
        return ToolReply(status="in_progress", effect=running.effect, progress=running.progress)

    def cancel(self, key: str) -> None:
        """Stop a call if it runs here."""
        if running := self._running.get(key):
            running.cancel(key)
        self._cancelled.add(key)

    async def void(self, ask: CallTool) -> ToolReply:
        """End a call for good and return its state in the ledger; `in_progress` while it runs, here or elsewhere."""
        if self._stopping:
            raise Unavailable("tool-registry", detail="it is being stopped")
        running = self._running.get(ask.key)
        if running is not None and running.task is not None:
            running.cancel(ask.key)
            if not await ended_within(running.task, self._settings.answer_within_s):
                return ToolReply(status="in_progress", effect=running.effect)
            if running.effect is Effect.READ and (reply := _read(running.task)) is not None:
                return reply
        return await VoidCall(
            ask,
            lambda: self.bind(ask),
            self._ledger,
            attempts_max=self._settings.attempts_max,
            join_s=self._settings.answer_within_s,
        ).reply()

    def _begin(self, ask: CallTool, content_hash: str) -> RunningCall:
        if self._stopping:
            raise Unavailable("tool-registry", detail="it is being stopped")
        most = self._settings.calls_max
        # Looked at twice: an answer that is kept for its caller runs no more.
        if len(self._running) >= most and len(self._tasks()) >= most:
            raise Unavailable("tool-registry", detail=f"all its {most} slots for calls are taken")
        share = self._settings.calls_per_tenant_max
        if self._of_tenant[ask.tenant] >= share and self._run_of(ask.tenant) >= share:
            raise Unavailable("tool-registry", detail=f"{share} calls of this tenant run already")
        running = self._running[ask.key] = RunningCall(ask.tenant, content_hash)
        # A client of `/mcp` may ask again under the key whose call it has cancelled; an executor never does.
        if not ask.direct and ask.key in self._cancelled:
            running.stop(StopReason.CANCELLED)
        running.task = asyncio.create_task(self._lead(ask, running), name=f"call {ask.key}")
        self._of_tenant[ask.tenant] += 1
        running.task.add_done_callback(lambda task: self._ended(ask.key, running, task))
        return running

    def _run_of(self, tenant: str) -> int:
        return sum(one.tenant == tenant and one.runs for one in self._running.values())

    async def _lead(self, ask: CallTool, running: RunningCall) -> ToolReply:
        # In a task of its own, which ends with the call.
        look_up_for(ask.tenant)
        bound = await self.bind(ask, to_begin=True)
        if isinstance(bound, BoundTool):
            self._take_slot(running, bound.server)
        if isinstance(bound, ToolReply) and bound.effect is Effect.READ and _is_refused(bound):
            return bound
        if isinstance(bound, BoundTool) and bound.tool.definition.is_free_read:
            call: ToolCall = ReadCall(ask, bound, self._ledger)
        else:
            # Also where the tool cannot be called: the key may have its outcome already.
            call = EffectCall(
                ask,
                lambda: self.bind(ask, to_begin=True),
                self._ledger,
                attempts_max=self._settings.attempts_max,
                join_s=self._settings.answer_within_s,
                cancel_wait_s=self._settings.cancel_wait_s,
                found=bound if isinstance(bound, BoundTool) else None,
            )
        if isinstance(bound, BoundTool):
            running.effect = bound.tool.effect
        running.call = call
        if running.reason is not None:
            call.stop(running.reason)
        return await call.reply()

    def _take_slot(self, running: RunningCall, server: NamedServer) -> None:
        """Count a call for its server. Raises Unavailable where that runs as many as it may."""
        most = self._settings.calls_per_server_max
        if not server.inside and sum(one.server is server and one.runs for one in self._running.values()) >= most:
            raise Unavailable("tool-registry", detail=f"{most} calls of {server.name!r} run already")
        running.server = server

    async def bind(self, ask: CallTool, *, to_begin: bool = False) -> BoundTool | ToolReply:
        """Return the tool with its arguments checked, or why it cannot be called.

        `to_begin`: not only to ask what became of the call, so that it needs its approval.
        """
        tool, server = await self._servers.find(ask.tool, tenant=ask.tenant)
        if tool is None and not await server.ready(self._settings.available_within_s):
            return self._away(ask, server)
        tool = tool or server.tools.get(ask.tool)
        if tool is None and (why := server.withheld.get(ask.tool)):
            fix = f"an administrator can approve it: wayline mcp approve {server.name}"
            return failed("refused", f"{ask.tool} cannot be called now: {why}; {fix}", strangers=False)
        if tool is None and (why := self._servers.missing.get(ask.tool)) is not None:
            return failed("unknown_tool", why, strangers=False)
        if tool is None:
            meant = next(iter(nearest_names(ask.tool, await self._servers.tools(ask.tenant))), None)
            hint = f"; did you mean {meant!r}?" if meant else ""
            return failed("unknown_tool", f"no tool {ask.tool!r}{hint}", strangers=False)
        if to_begin and (problem := tool.unapproved(ask.definition)):
            return failed("definition_changed", problem, effect=tool.effect, strangers=False)
        if to_begin and ask.misfit is not None and ask.misfit != tool.definition.digest_of_description:
            problem = f"{ask.tool} has changed since the arguments of this call were compared with its schema"
            return failed("definition_changed", problem, effect=tool.effect, strangers=False)
        schema, digest = tool.definition.input_schema, tool.schema_digest
        if problem := await self._arguments.check(schema, ask.arguments, digest=digest, tenant=ask.tenant):
            return failed("invalid_arguments", f"{ask.tool}: {problem}", effect=tool.effect)
        if to_begin and ask.misfit is not None:
            # Nobody was asked to approve it, because it was found to be wrong: it may not turn out to be right.
            problem = f"{ask.tool}: its arguments do not fit its schema"
            return failed("invalid_arguments", problem, effect=tool.effect, strangers=False)
        hear = partial(self._hear, ask.key)
        return BoundTool(tool, server, self._telemetry, self._settings.result_max_bytes, tell=hear)

    def _hear(self, key: str, progress: ToolProgress) -> None:
        if running := self._running.get(key):
            running.progress = progress

    def _away(self, ask: CallTool, server: NamedServer) -> ToolReply:
        why = self._servers.away(ask.tenant).get(server.name, "")
        waits = why.startswith(NEEDS_LOGIN)
        message = f"{ask.tool}: the server {server.name!r} is not connected; {why if waits else 'try it later'}"
        return failed("needs_authorization" if waits else "unavailable", message, begun=not waits)

    def _ended(self, key: str, running: RunningCall, task: asyncio.Task[ToolReply]) -> None:
        self._of_tenant[running.tenant] -= 1
        if not self._of_tenant[running.tenant]:
            del self._of_tenant[running.tenant]
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, WaylineError):
            log.error("call failed", key=key, error=repr(error), exc_info=error)
        if isinstance(running.call, ReadCall) and not running.waiting and error is None and not task.cancelled():
            self._kept.keep(running.tenant, task.result(), forget=partial(self._forget, key))
        else:
            self._forget(key)

    def _forget(self, key: str) -> None:
        self._running.pop(key, None)

    def _tasks(self) -> list[asyncio.Task[ToolReply]]:
        return [r.task for r in self._running.values() if r.task is not None and not r.task.done()]


def _read(task: asyncio.Task[ToolReply]) -> ToolReply | None:
    """Return what a read brought: it is in no ledger."""
    return None if task.cancelled() or task.exception() is not None else task.result()


def _is_refused(reply: ToolReply) -> bool:
    return reply.error is not None and reply.error.code in {"invalid_arguments", "definition_changed"}
