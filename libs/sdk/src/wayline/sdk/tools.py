"""Functions of a service as tools on the bus: announced, called, and drained at SIGTERM."""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, TypeVar

from faststream.nats import NatsBroker, NatsMessage
from nats import errors as nats_errors
from nats.aio.client import Client
from opentelemetry import trace
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from wayline.contracts import headers as h
from wayline.contracts import ids
from wayline.contracts.bus_tools import (
    ANNOUNCE_EVERY_S,
    HEARTBEAT_EVERY_S,
    Announced,
    AnnounceTools,
    InvokeResult,
    InvokeTool,
    WantTools,
)
from wayline.contracts.errors import InvalidMessage, Problem, Unavailable, WaylineError, raised
from wayline.contracts.server_config import SERVER_NAME
from wayline.contracts.tools import Ask, Effect
from wayline.sdk.answers import encoded, failure
from wayline.sdk.bus_service import BusService
from wayline.sdk.call import Call
from wayline.sdk.connection import bus_broker
from wayline.sdk.errors import ToolsRefused
from wayline.sdk.functions import Outcome, ToolFunction

log = logging.getLogger("wayline.sdk")
tracer = trace.get_tracer("wayline.sdk")

ANSWER_WITHIN_S = 3.0
"""How long a registry has to say what is wrong with an announcement."""

F = TypeVar("F", bound=Callable[..., Any])
EffectName = Literal["read", "idempotent", "reconcile", "once"]


@dataclass(frozen=True)
class Incoming:
    """A call as it came."""

    body: bytes
    subject: str
    reply: str
    headers: dict[str, str]


class Tools(BusService):
    """The tools of one service; its instances share the calls.

    tools = Tools("orders")

    @tools.tool(effect="once")
    async def refund(order: str, call: Call) -> str: ...

    app = tools.application()
    """

    def __init__(
        self,
        service: str,
        *,
        broker: NatsBroker | None = None,
        tenant: str | None = None,
        instructions: str = "",
        version: str = "",
        calls_max: int = 64,
        drain_grace_s: float = 20.0,
    ) -> None:
        """Make a service. Raises ValueError for a name that cannot be a part of its tools' names."""
        if not re.fullmatch(SERVER_NAME, service):
            raise ValueError(
                f"a service cannot be called {service!r}: take small letters, digits and hyphens between them, "
                "32 at most, such as 'order-desk'"
            )
        self.service = service
        self.tenant = tenant or os.environ.get("WAYLINE_TENANT") or "default"
        self.broker = broker or bus_broker()
        self._instructions = instructions
        self._version = version
        self._calls_max = calls_max
        self._drain_grace_s = drain_grace_s
        self._functions: dict[str, ToolFunction] = {}
        self._instance = ids.new_id("instance")
        self._started_at = datetime.now(UTC)
        self._known = False
        """Whether a registry has taken the announcement."""
        self._draining = False
        self._running: set[asyncio.Task[None]] = set()
        self._announcing: asyncio.Task[None] | None = None
        subject = f"tools.invoke.{self.tenant}.{service}"
        self._subscriber = self.broker.subscriber(subject, queue=service, decoder=_incoming, no_reply=True)
        self._subscriber(self._on_call)
        self.broker.subscriber(WantTools.subject_template, no_reply=True)(self._on_wanted)

    def tool(
        self,
        *,
        effect: EffectName = "once",
        name: str | None = None,
        timeout_s: float = 60.0,
        in_order: bool = False,
        ask: Ask = "never",
        untrusted: bool = False,
        outcome: Outcome | None = None,
    ) -> Callable[[F], F]:
        """Offer a function as a tool: its parameters are the schema, its docstring is what the model is told.

        A `reconcile` tool has an `outcome`: an async function that says what became of a call's key, or None.
        """
        if (effect == "reconcile") != (outcome is not None):
            raise TypeError('a tool with effect="reconcile" has an `outcome`, and no other tool has one')

        def offer(function: F) -> F:
            made = ToolFunction.of(
                function,
                name=name,
                outcome=outcome,
                effect=Effect(effect),
                timeout_s=timeout_s,
                in_order=in_order,
                ask=ask,
                untrusted=untrusted,
            )
            if made.offered.name in self._functions:
                raise TypeError(f"there is a tool {made.offered.name} already")
            self._functions[made.offered.name] = made
            return function

        return offer

    async def start(self) -> None:
        """Announce the tools now and from now on. Raises ToolsRefused where the registry does not offer them."""
        await (await self._nc()).flush()
        await self._announce_and_ask()
        self._announcing = asyncio.create_task(self._announce_on(), name="announcing tools")
        log.info("offering %s as %s", ", ".join(sorted(self._functions)), self.service)

    async def drain(self) -> None:
        """Take no more calls, and end those that run, for as long as the grace lasts."""
        self._draining = True
        if self._announcing is not None:
            self._announcing.cancel()
        with suppress(nats_errors.Error):
            await self._say(self._announcement(leaving=True))
            if self._subscriber.subscription is not None:
                # Before FastStream stops the subscriber, which drops what comes after: such a call would be lost.
                await self._subscriber.subscription.drain()
                self._subscriber.subscription = None
        if self._running:
            _, late = await asyncio.wait(self._running, timeout=self._drain_grace_s)
            for task in late:
                log.error("%s did not end within %s s", task.get_name(), self._drain_grace_s)
                task.cancel()
        with suppress(nats_errors.Error):
            await (await self._nc()).flush()

    # Announcing

    async def _announce_on(self) -> None:
        while True:
            await asyncio.sleep(ANNOUNCE_EVERY_S)
            try:
                await (self._say(self._announcement()) if self._known else self._announce_and_ask())
            except (nats_errors.Error, ToolsRefused) as error:
                log.warning("%s is not announced: %s", self.service, error or type(error).__name__)

    async def _announce_and_ask(self) -> None:
        announcement = self._announcement()
        try:
            nc = await self._nc()
            answer = await nc.request(
                announcement.subject, announcement.to_wire(), timeout=ANSWER_WITHIN_S, headers=_headers(announcement)
            )
        except (nats_errors.NoRespondersError, nats_errors.TimeoutError, TimeoutError):
            log.warning("no registry has taken the tools of %s yet; they are announced again", self.service)
            return
        if h.ERROR in (answer.headers or {}):
            raise ToolsRefused(f"{self.service}: {raised(Problem.model_validate_json(answer.data))}")
        taken = Announced.model_validate_json(answer.data)
        left_out, held = taken.left_out, taken.held
        if left_out:
            raise ToolsRefused("; ".join(f"the tool {name}: {why}" for name, why in left_out.items()))
        if held:
            names = ", ".join(sorted(filter(None, held))) or "the instructions"
            log.warning("%s: an administrator has to approve them: wayline mcp approve %s", names, self.service)
        self._known = True

    async def _on_wanted(self, _: Any) -> None:
        if not self._draining:
            await self._say(self._announcement())

    def _announcement(self, *, leaving: bool = False) -> AnnounceTools:
        return AnnounceTools(
            tenant=self.tenant,
            service=self.service,
            instance=self._instance,
            started_at=self._started_at,
            leaving=leaving,
            service_version=self._version,
            instructions=self._instructions,
            tools=() if leaving else tuple(one.offered for one in self._functions.values()),
        )

    async def _say(self, announcement: AnnounceTools) -> None:
        nc = await self._nc()
        await nc.publish(announcement.subject, announcement.to_wire(), headers=_headers(announcement))

    async def _nc(self) -> Client:
        return await self.broker.connect()

    # Calls

    async def _on_call(self, incoming: Any) -> None:
        # Handled beside the subscription, which would take one call after the other.
        task = asyncio.create_task(self._answer(incoming), name=f"a call of {self.service}")
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _answer(self, incoming: Incoming) -> None:
        try:
            body, headers = encoded(await self._result(incoming)), None
        except TimeoutError:
            # Nobody waits any more, and whether the tool acted is not known: no answer says so.
            return log.error("a call of %s took longer than its tool may", self.service)
        except WaylineError as error:
            body, headers = error.problem().model_dump_json().encode(), {h.ERROR: error.code}
        await self._reply(incoming.reply, body, headers)

    async def _result(self, incoming: Incoming) -> InvokeResult:
        """Run the tool of a call. Raises Unavailable where it does not begin."""
        invocation = InvokeTool.from_wire(incoming.body, incoming.subject)
        tool = self._functions.get(invocation.tool)
        if tool is None:
            raise Unavailable(f"{self.service}'s tool {invocation.tool}", detail="this instance does not offer it")
        if len(self._running) > self._calls_max:
            raise Unavailable(self.service, detail=f"it runs {self._calls_max} calls, the most it takes")
        if datetime.now(UTC) >= invocation.deadline:
            raise Unavailable(self.service, detail="the call came after its deadline")
        if invocation.reconcile and tool.outcome is None:
            raise InvalidMessage(schema=InvokeTool.schema_id(), reason=f"{invocation.tool} is not of effect reconcile")
        call = Call(
            key=invocation.key,
            tenant=invocation.tenant,
            job_id=invocation.job_id,
            step=invocation.step,
            user_id=invocation.user_id,
            deadline=invocation.deadline,
        )
        work = tool.reconcile(call) if invocation.reconcile else tool.run(invocation.arguments, call)
        parent = TraceContextTextMapPropagator().extract(incoming.headers)
        with tracer.start_as_current_span(f"tools/call {invocation.tool}", parent, trace.SpanKind.SERVER):
            async with asyncio.timeout(invocation.timeout_s):
                return await self._with_heartbeats(work, incoming.reply, invocation.tool)

    async def _with_heartbeats(self, work: Coroutine[Any, Any, InvokeResult], reply: str, tool: str) -> InvokeResult:
        beating = asyncio.create_task(self._beat(reply))
        try:
            return await work
        except Exception as error:
            log.exception("the tool %s failed", tool)
            return failure(f"the tool failed ({type(error).__name__})")
        finally:
            beating.cancel()

    async def _beat(self, reply: str) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_EVERY_S)
            await self._reply(reply, b"", {h.HEARTBEAT: "1"})

    async def _reply(self, subject: str, body: bytes, headers: dict[str, str] | None) -> None:
        try:
            await (await self._nc()).publish(subject, body, headers=headers)
        except nats_errors.Error as error:
            log.error("an answer of %s was not sent: %s", self.service, error)


def _headers(announcement: AnnounceTools) -> dict[str, str]:
    return {h.SCHEMA: announcement.schema_id(), h.TENANT: announcement.tenant}


async def _incoming(message: NatsMessage) -> Incoming:
    raw = message.raw_message
    return Incoming(raw.data, raw.subject, raw.reply, dict(raw.headers or {}))
