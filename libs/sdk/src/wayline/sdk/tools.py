"""Functions of a service as tools on the bus: announced, called, and drained at SIGTERM."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Literal, TypeVar

from faststream.nats import NatsBroker
from nats import errors as nats_errors
from pydantic import ValidationError

from wayline.contracts import ids
from wayline.contracts.base import explain
from wayline.contracts.bus_tools import TOOLS_MAX, AnnounceTools, BusTool, InvokeTool, WantTools
from wayline.contracts.bus_tools import InvokeResult as Result
from wayline.contracts.server_config import SERVER_NAME
from wayline.contracts.tools import Ask, Effect
from wayline.sdk.announcer import Announcer
from wayline.sdk.bus_program import BusProgram
from wayline.sdk.call import NoteProgress
from wayline.sdk.call_runner import CallRunner, Incoming
from wayline.sdk.connection import bus_broker, chosen_tenant
from wayline.sdk.functions import Outcome, ToolFunction

F = TypeVar("F", bound=Callable[..., Any])
EffectName = Literal["read", "idempotent", "reconcile", "once"]


class Tools(BusProgram):
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
        self.tenant = chosen_tenant(tenant)
        self.broker = broker or bus_broker()
        self._drain_grace_s = drain_grace_s
        self._functions: dict[str, ToolFunction] = {}
        instance = self._instance(version=version, instructions=instructions)
        self._announcer = Announcer(self.broker, instance, self._offered)
        self._calls = CallRunner(service, self._functions, self.broker, calls_max=calls_max)
        subject = f"tools.invoke.{self.tenant}.{service}"
        self._subscriber = self.broker.subscriber(subject, queue=service, decoder=Incoming.decode, no_reply=True)
        self._subscriber(self._calls.on_call)
        stop = f"tools.stop.{self.tenant}.{service}"
        self.broker.subscriber(stop, decoder=Incoming.decode, no_reply=True)(self._calls.on_stop)
        self.broker.subscriber(WantTools.subject_template, no_reply=True)(self._announcer.on_wanted)

    def tool(
        self,
        function: None = None,
        /,
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
        if callable(function):
            raise TypeError(f"write @tools.tool() with brackets above {function!r}")
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
                raise TypeError(f"there is a tool {made.offered.name} already: give one of them a `name=`")
            if len(self._functions) >= TOOLS_MAX:
                raise TypeError(f"{self.service} has {TOOLS_MAX} tools, the most of one service: make a second one")
            self._functions[made.offered.name] = made
            return function

        return offer

    async def invoke(self, invocation: InvokeTool, note_progress: NoteProgress) -> Result:
        """Run one call in this process, without the bus. Raises what `CallRunner.run` does."""
        return await self._calls.run(invocation, note_progress)

    def cancel(self, key: str) -> None:
        """Tell a call that it was cancelled, where it runs in this process."""
        self._calls.stop(key)

    def offered(self, tool: str) -> BusTool | None:
        """Return what is announced of a tool; None: there is none."""
        found = self._functions.get(tool)
        return None if found is None else found.offered

    async def start(self) -> None:
        """Announce the tools now and from now on. Raises ToolsRefused where the registry does not offer them."""
        if not self._functions:
            raise TypeError(f"{self.service} has no tools: decorate a function with @tools.tool()")
        # The subscriptions first: a tool that is announced can be called.
        nc = await self.broker.connect()
        # The client writes PING past its buffer, so that one round trip may overtake a subscription; two cannot.
        await nc.flush()
        await nc.flush()
        await self._announcer.start()

    async def drain(self) -> None:
        """Take no more calls, and end those that run, for as long as the grace lasts."""
        self._announcer.stop()
        if connected := await self.is_connected():
            await self._leave()
        await self._calls.drain(self._drain_grace_s)
        if connected:
            with suppress(nats_errors.Error):
                await (await self.broker.connect()).flush()

    async def _leave(self) -> None:
        """Have the bus send no more calls here."""
        with suppress(nats_errors.Error):
            await self._announcer.leave()
            if self._subscriber.subscription is not None:
                # Before FastStream stops the subscriber, which drops what comes after: such a call would be lost.
                await self._subscriber.subscription.drain()
                self._subscriber.subscription = None

    def _offered(self) -> tuple[BusTool, ...]:
        return tuple(one.offered for one in self._functions.values())

    def _instance(self, *, version: str, instructions: str) -> AnnounceTools:
        """Return what this process announces beside its tools. Raises ValueError for what is too long."""
        try:
            return AnnounceTools(
                tenant=self.tenant,
                service=self.service,
                instance=ids.new_id("instance"),
                started_at=datetime.now(UTC),
                service_version=version,
                instructions=instructions,
            )
        except ValidationError as error:
            raise ValueError(f"the service {self.service} cannot be announced: {explain(error)}") from None
