"""A function as a tool: its schema from its signature, its arguments checked, its result as an answer."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from pydantic import BaseModel, ValidationError

from wayline.contracts.base import explain
from wayline.contracts.bus_tools import BusTool, InvokeResult
from wayline.sdk.answers import answer_of, failure
from wayline.sdk.call import Call
from wayline.sdk.daemon_threads import DaemonThreads
from wayline.sdk.errors import ToolFailed
from wayline.sdk.signature import Signature

OUTCOME_MAX_CHARS = 100_000
"""Of what a `reconcile` tool says became of a key: encoded, they fit into an answer."""

Outcome = Callable[[Call], Awaitable[str | None]]
"""Returns what became of a call's key; None: nothing has begun under it, and nothing will."""


@dataclass(frozen=True)
class ToolFunction:
    """A function that is offered as a tool."""

    offered: BusTool
    function: Callable[..., Any]
    arguments: type[BaseModel]
    call_parameters: tuple[str, ...] = field(default=())
    outcome: Outcome | None = None

    @cached_property
    def schema_sha256(self) -> str:
        return self.offered.schema_sha256

    @classmethod
    def of(
        cls, function: Callable[..., Any], *, name: str | None, outcome: Outcome | None, **offered: Any
    ) -> ToolFunction:
        """Read a function's signature and docstring. Raises TypeError where it can be no tool."""
        tool = name or getattr(function, "__name__", "")
        _require_tool(function, tool)
        if outcome is not None and not inspect.iscoroutinefunction(outcome):
            raise TypeError(f"the tool {tool}: its `outcome` must be an async def")
        signature = Signature.of(function, tool=tool)
        schema = signature.schema(tool=tool)
        description = inspect.getdoc(function) or ""
        try:
            shown = BusTool(
                name=tool,
                description=description,
                input_schema=schema,
                output_schema=signature.output_schema(),
                **offered,
            )
        except ValidationError as error:
            raise TypeError(f"the tool {tool}: {explain(error)}") from None
        return cls(shown, function, signature.arguments, signature.call_parameters, outcome)

    async def run(self, arguments: dict[str, Any], call: Call, threads: DaemonThreads) -> InvokeResult:
        """Run the function and return its answer; ToolFailed and wrong arguments are answers."""
        try:
            values = self.arguments.model_validate(arguments)
        except ValidationError as error:
            return failure(f"wrong arguments: {explain(error)}")
        given = {name: getattr(values, name) for name in self.arguments.model_fields}
        given |= dict.fromkeys(self.call_parameters, call)
        try:
            if inspect.iscoroutinefunction(self.function):
                result = await self.function(**given)
            else:
                result = await threads.run(partial(self.function, **given))
            if inspect.isawaitable(result):
                # A decorator made a plain function of a coroutine function.
                result = await result
        except ToolFailed as error:
            return failure(str(error))
        return answer_of(result)

    async def reconcile(self, call: Call) -> InvokeResult:
        """Say what became of a call's key."""
        assert self.outcome is not None
        try:
            content = await self.outcome(call)
        except ToolFailed as error:
            return failure(str(error))
        if isinstance(content, str):
            content = content[:OUTCOME_MAX_CHARS]
        return InvokeResult(structured={"found": content is not None, "content": content})


def _require_tool(function: Callable[..., Any], tool: str) -> None:
    """Raise TypeError where a function has no name, or does not return once."""
    if not tool:
        raise TypeError(f"{function!r} has no name: give the tool one with `name=`")
    if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        raise TypeError(f"the tool {tool}: it must return its result once, so it cannot yield")
