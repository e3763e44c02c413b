"""The tool registry, asked on behalf of a held job."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain, repeat
from typing import Any, Literal, NamedTuple

import structlog

from wayline.chassis import Bus, Failpoint, keep_trying, reach
from wayline.chassis.concurrency.single_flight import SingleFlight
from wayline.contracts.errors import Bug, Reject, Retry, Unavailable
from wayline.contracts.events import DecisionMade
from wayline.contracts.jobs import CallProgress, Delta
from wayline.contracts.searched_tools import FoundTools, SearchTools
from wayline.contracts.tools import (
    BUILTIN,
    CallTool,
    CancelTool,
    Effect,
    ListTools,
    ResolveTool,
    ToolDefinition,
    ToolError,
    ToolList,
    ToolProgress,
    ToolReply,
    VoidTool,
)
from wayline.executor.decide.absent_tools import absent_servers, worth_waiting
from wayline.executor.decide.approvals import answer_to_call, arguments_of, digest_to_call, misfit
from wayline.executor.decide.call_origin import origin_of
from wayline.executor.decide.rerank import is_wanted
from wayline.executor.prompt.builtin_tools import may_use
from wayline.journal import Call, Job
from wayline.telemetry import JobTrace

log = structlog.get_logger()

ASK_AGAIN_S = 0.2
ASK_AFTER_BUG_S = 1.0
"""The pause after the registry answered that it failed itself."""
VOID_WAIT_S = 30.0
"""How long a call that still runs is waited for when its job ends; longer than a registry waits for a tool's answer."""
VOID_SILENT_S = 15.0
"""How long a registry that does not answer is waited for when a job ends: longer than it takes to start. One that is
frozen finds the cancel behind the call and begins nothing; what it was busy with is unknown, and the job says so."""
SETTLE_LEDGER_S = 960.0
"""How long a registry is waited for that answers without its ledger: longer than it holds an outcome for that."""
VOID_ASKS_S = (0.5, 0.5, 1.0, 1.0, 2.0)
"""How long the first requests to end a call wait: the bus chooses a replica for each, and one may be frozen."""
VOID_UNKNOWN_S = 5.0
"""The same for a call whose outcome the ledger called unknown before: it cannot begin in any case."""
SEARCH_TRIES = 5
LISTINGS_MAX = 1_024
CHARGED_MAX = 20_000
"""Tools of which it is remembered whether they charge."""
ABSENT_WAIT_S = 60.0
"""How long a job waits before its first call for a server that the registry has not reached yet."""
ABSENT_PAUSE_S = 0.5
GIVEN_UP_S = 300.0
"""How long a server that was waited for in vain delays no other job."""
NOBODY_KNOWS = "nobody knows whether it took effect"

Allowed = tuple[str, tuple[str, ...], tuple[str, ...]]
"""A tenant, and the patterns of the tools that an agent may use and may not."""


def _allowed(job: Job) -> Allowed:
    assert job.routing.config is not None
    return job.tenant, job.routing.config.tools, job.routing.config.tools_off


class _Listing(NamedTuple):
    """The tools that an agent may use, and the servers of which none is listed."""

    until: float
    """How long it is used again."""
    tools: tuple[ToolDefinition, ...]
    absent: tuple[str, ...]
    coming: tuple[str, ...]
    """Those of them that may be there soon."""


class Stopwatch:
    """Counts the seconds since it was made."""

    def __init__(self) -> None:
        self._since_s = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._since_s


class ToolRegistry:
    """The tool registry, asked until it knows."""

    def __init__(self, bus: Bus, *, fresh_s: float, wait_s: float, absent_wait_s: float = ABSENT_WAIT_S) -> None:
        self._bus = bus
        self._fresh_s = fresh_s
        self._wait_s = wait_s
        self._absent_wait_s = absent_wait_s
        self._listed: dict[Allowed, _Listing] = {}
        self._given_up: dict[tuple[str, str], float] = {}
        """Until when a server of a tenant is not waited for again."""
        self._charged: dict[tuple[str, str], bool] = {}
        """Of tools of tenants that were called here: whether one has reported that it charged."""
        self._listings = SingleFlight[Allowed, ToolList]()

    def known(self, job: Job) -> tuple[ToolDefinition, ...] | None:
        """Return the tools the job's agent may use, where a listing is fresh enough; None: ask for them."""
        assert job.routing.config is not None
        if not job.routing.config.tools:
            return ()
        listing = self._listed.get(_allowed(job))
        if listing is None or listing.until <= time.monotonic():
            return None
        # A job that is at work may have listed while a server was absent: one that begins waits for that.
        begins = job.tools.offered is None
        return None if begins and self._waited_for(job.tenant, listing.coming) else listing.tools

    def absent(self, job: Job) -> tuple[str, ...]:
        """Return the servers whose tools the last listing lacked, and of which the job's agent may use some."""
        listing = self._listed.get(_allowed(job))
        return () if listing is None else listing.absent

    async def offered(self, job: Job) -> tuple[ToolDefinition, ...]:
        """Return the tools the job's agent may use, sorted by name; wait for a registry that is away.

        Before a job's first call a server is waited for too that the registry has not reached yet.
        """
        assert job.routing.config is not None
        key = _allowed(job)
        listed = await self._complete(job, key) if job.tools.offered is None else await self._list(job, key)
        if len(self._listed) >= LISTINGS_MAX:
            self._listed.clear()
        # The same object as long as it says the same, so that jobs can tell at a glance that nothing is new.
        usable = tuple(tool for tool in listed.tools if may_use(job, tool.name))
        before = self._listed.get(key)
        tools = usable if before is None or before.tools != usable else before.tools
        absent = tuple(one.name for one in absent_servers(job.routing.config.tools, listed.away))
        coming = worth_waiting(job.routing.config.tools, listed.away)
        self._listed[key] = _Listing(time.monotonic() + self._fresh_s, tools, absent, coming)
        return tools

    async def _list(self, job: Job, key: Allowed) -> ToolList:
        assert job.routing.config is not None
        asking = partial(self._bus.ask, ListTools(tenant=job.tenant, patterns=job.routing.config.tools), ToolList)
        return await keep_trying("list tools", lambda: self._listings.fetch(key, asking))

    async def _complete(self, job: Job, key: Allowed) -> ToolList:
        """Return a listing without absent servers, or one that was waited for as long as it may be."""
        assert job.routing.config is not None
        until = time.monotonic() + self._absent_wait_s
        while True:
            listed = await self._list(job, key)
            waited_for = self._waited_for(job.tenant, worth_waiting(job.routing.config.tools, listed.away))
            if not waited_for:
                return listed
            if time.monotonic() >= until:
                self._give_up(job.tenant, waited_for)
                return listed
            # Another replica may know them already.
            await asyncio.sleep(ABSENT_PAUSE_S)

    def _waited_for(self, tenant: str, coming: Sequence[str]) -> list[str]:
        """Return those of a tenant's absent servers that are not given up."""
        now = time.monotonic()
        return [name for name in coming if self._given_up.get((tenant, name), 0.0) <= now]

    def _give_up(self, tenant: str, names: Sequence[str]) -> None:
        now = time.monotonic()
        log.warning("a job begins without tools of servers", tenant=tenant, servers=names)
        self._given_up = {key: until for key, until in self._given_up.items() if until > now}
        self._given_up |= {(tenant, name): now + GIVEN_UP_S for name in names}

    async def definition_now(self, job: Job, name: str) -> ToolDefinition | None:
        """Return a tool's definition as the registry has it now, past any listing that is fresh enough; None: gone."""
        asking = ListTools(tenant=job.tenant, patterns=(name,))
        listed = await keep_trying("list tools", lambda: self._bus.ask(asking, ToolList))
        return next((tool for tool in listed.tools if tool.name == name), None)

    async def search(self, job: Job, query: str, *, at_most: int) -> FoundTools | None:
        """Return the tools that fit, of those that the model does not know; None: the registry does not answer."""
        assert job.routing.config is not None
        known = (*(job.tools.offered or ()), *job.tools.discovered)
        asking = SearchTools(
            tenant=job.tenant,
            query=query,
            max_results=at_most,
            patterns=job.routing.config.tools,
            off=job.routing.config.tools_off,
            loaded=tuple(dict.fromkeys(tool.name for tool in known)),
        )
        for _ in range(SEARCH_TRIES):
            try:
                return await self._bus.ask(asking, FoundTools, timeout_s=self._wait_s)
            except Retry as error:
                await asyncio.sleep(max(ASK_AGAIN_S, error.after_s))
        return None

    def may_charge(self, job: Job, call: Call) -> bool:
        """Return whether a tool without a `charge` may report one: until it has answered here, and once it has done so.

        Tools that Wayline brings itself are free until they report something else.
        """
        definition = job.tools.definition(call.meant.tool)
        ours = definition is not None and definition.server == BUILTIN
        return self._charged.get((job.tenant, call.meant.tool), not ours)

    def _note_charge(self, job: Job, call: Call, reply: ToolReply) -> None:
        tool = (job.tenant, call.meant.tool)
        if len(self._charged) >= CHARGED_MAX:
            self._charged.clear()
        if reply.cost_usd:
            self._charged[tool] = True
        elif reply.status == "success":
            self._charged.setdefault(tool, False)

    async def call(self, job: Job, call: Call, *, timeout_s: float, asked_before: bool = False) -> ToolReply:
        """Run a tool call to its end, asking again with the same key while nobody answers: the ledger knows.

        `asked_before`: an earlier holder of the job may have made it.
        """
        assert call.key is not None and call.span is not None
        request = CallTool(
            **_call_fields(job, call, within_s=timeout_s),
            definition=digest_to_call(job, call.wanted.call, call.meant.tool),
            answer=answer_to_call(job, call.wanted.call),
            asked_before=asked_before,
            form="text" if job.code.call(call.wanted.call) is None else "value",
            misfit=misfit(job, call),
            origin=origin_of(job, call),
            rerank=is_wanted(job, call),
        )
        headers = JobTrace(call.span.trace_id, call.span.span_id).headers()
        known, told = job.tools.definition(call.meant.tool), None
        while True:
            try:
                reach(Failpoint.EXECUTOR_TOOL_BEFORE)
                reply = await self._bus.ask(request, ToolReply, timeout_s=self._wait_s, headers=headers)
                reach(Failpoint.EXECUTOR_TOOL_AFTER)
            except Retry as error:
                await asyncio.sleep(max(ASK_AGAIN_S, error.after_s))
                request = request.model_copy(update={"asked_before": True})
                continue
            except Reject as error:
                if error.code != Bug.code or (known is not None and known.is_free_read):
                    return _failed("refused", str(error))
                # The registry failed before, while or after the tool acted: only its ledger can tell.
                if datetime.now(UTC) > request.deadline:
                    return ToolReply(status="unknown", effect=Effect.ONCE)
                await asyncio.sleep(ASK_AFTER_BUG_S)
                continue
            if reply.status != "in_progress":
                self._note_charge(job, call, reply)
                return reply
            if reply.progress is not None and reply.progress != told:
                told = reply.progress
                await self._bus.send(_progress(job, call, told))

    async def resolve(self, job: Job, call: Call, decision: DecisionMade) -> ToolReply:
        """Write a human's decision into the ledger; the answer is what the ledger then says of the call."""
        assert call.key is not None
        outcome = "succeeded" if decision.outcome == "succeeded" else "failed"
        content = decision.content or ("" if decision.outcome != "expired" else "nobody decided in time")
        request = ResolveTool(tenant=job.tenant, key=call.key, outcome=outcome, content=content)
        return await keep_trying(
            "resolve a tool call", lambda: self._bus.ask(request, ToolReply, timeout_s=self._wait_s)
        )

    async def void(self, job: Job, call: Call) -> ToolReply:
        """End a call for good and return what the ledger says of it.

        A call that has not begun never begins. One that runs is awaited for VOID_WAIT_S. After that, or where no
        registry answers for VOID_SILENT_S, its outcome is unknown.
        """
        if call.decision is not None and call.decision.outcome != "retry":
            return await self._resolved(job, call, call.decision)
        assert call.key is not None
        void = VoidTool(**_call_fields(job, call, within_s=VOID_WAIT_S))
        give_up = ResolveTool(tenant=job.tenant, key=call.key, outcome="failed", content=NOBODY_KNOWS)
        silent_s = VOID_UNKNOWN_S if call.decision_id else VOID_SILENT_S
        waited, until_s = Stopwatch(), silent_s
        patience = chain(VOID_ASKS_S, repeat(self._wait_s))
        while waited.seconds < until_s:
            try:
                await self._bus.send(CancelTool(tenant=job.tenant, key=call.key))
                ending = void if waited.seconds < VOID_WAIT_S else give_up
                reply = await self._bus.ask(ending, ToolReply, timeout_s=min(self._wait_s, next(patience)))
            except Retry as error:
                if not isinstance(error, Unavailable):
                    # A registry answered: it lives, and may hold an outcome for a ledger that is away.
                    until_s = max(until_s, SETTLE_LEDGER_S)
                await asyncio.sleep(max(ASK_AGAIN_S, error.after_s))
                continue
            except Reject as error:
                if error.code != Bug.code:
                    return _failed("refused", str(error))
                await asyncio.sleep(ASK_AFTER_BUG_S)
                continue
            if reply.status != "in_progress":
                return reply if reply.repeated or ending is void else _UNKNOWN
            until_s = max(until_s, waited.seconds + silent_s)
        return _UNKNOWN

    async def _resolved(self, job: Job, call: Call, decision: DecisionMade) -> ToolReply:
        """Return a human's decision as the outcome of a call, written into the ledger where that answers soon."""
        try:
            async with asyncio.timeout(VOID_UNKNOWN_S):
                return await self.resolve(job, call, decision)
        except TimeoutError:
            if decision.outcome == "succeeded":
                return ToolReply(status="success", content=decision.content, strangers=False)
            return _UNKNOWN


def _call_fields(job: Job, call: Call, *, within_s: float) -> dict[str, Any]:
    """Return what every request about a call says of it."""
    return {
        "tenant": job.tenant,
        "key": call.key,
        "job_id": job.job_id,
        "step": job.model.step,
        "call": call.wanted.call,
        "tool": call.meant.tool,
        "arguments": arguments_of(job, call),
        "deadline": datetime.now(UTC) + timedelta(seconds=within_s),
        "user_id": job.life.submitted.user_id if job.life.submitted else None,
    }


def _failed(code: Literal["refused", "cancelled"], message: str) -> ToolReply:
    """Return a failure in the words of this platform."""
    return ToolReply(status="failed", error=ToolError(code=code, message=message), strangers=False)


_UNKNOWN = _failed("cancelled", NOBODY_KNOWS)


def _progress(job: Job, call: Call, told: ToolProgress) -> Delta:
    """Return how far a call is, for those who follow the job now; nothing of it is stored."""
    said = CallProgress(call=call.wanted.call, tool=call.meant.tool, **told.model_dump())
    return Delta(tenant=job.tenant, job_id=job.job_id, step=job.model.step, attempt=0, text="", tool=said)
