"""What the registry does with each message about calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from wayline.contracts.errors import Reject, Unavailable
from wayline.contracts.tools import (
    CallTool,
    CancelTool,
    ListTools,
    MissingTool,
    ResolveTool,
    ServerAway,
    ToolError,
    ToolList,
    ToolReply,
    VoidTool,
)
from wayline.llm.tokens import estimate
from wayline.tool_registry.calls.ledger import Ledger
from wayline.tool_registry.calls.running_calls import RunningCalls
from wayline.tool_registry.calls.tool_servers import ToolServers
from wayline.tool_registry.definitions.tool_catalogue import Tool, select

KEY_PARTS_MIN = 4
"""`<tenant>/<job>/<step>/<call>`; doing a call again adds to them."""


@dataclass(frozen=True)
class CallHandlers:
    """One coroutine a message."""

    servers: ToolServers
    calls: RunningCalls
    ledger: Ledger
    prepare: Callable[[str, Mapping[str, Tool]], None]
    """Hears which tools a tenant has: they may be searched soon."""

    async def list_tools(self, ask: ListTools) -> ToolList:
        """Say which tools there are. Raises Unavailable before it is known which servers there are."""
        there = await self.servers.tools(ask.tenant)
        tools = select(there, ask.patterns)
        if not self.servers.is_read:
            raise Unavailable("tool-registry", detail="it has not read yet which servers there are")
        unknown = await self.servers.unknown(ask.tenant)
        why = {**dict.fromkeys(unknown, "it is being connected"), **self.servers.away(ask.tenant)}
        away = tuple(
            ServerAway(name=name, why=one, known=name not in unknown, tried=unknown.get(name, True))
            for name, one in why.items()
        )
        self.prepare(ask.tenant, there)
        missing = tuple(MissingTool(name=name, why=why) for name, why in self.servers.missing.items())
        known = {tool.name: there[tool.name].details for tool in tools} if ask.details else {}
        details = {name: one for name, one in known.items() if one is not None}
        return ToolList(tools=tools, away=away, missing=missing, details=details)

    async def call_tool(self, ask: CallTool) -> ToolReply:
        """Run a tool, once for its key."""
        _check_key(ask.key, f"{ask.tenant}/{ask.job_id}/{ask.step}/{ask.call}")
        return await self.calls.call(ask)

    async def cancel_tool(self, request: CancelTool) -> None:
        """Stop a call if it runs in this replica."""
        if request.key.startswith(f"{request.tenant}/"):
            self.calls.cancel(request.key)

    async def void_tool(self, ask: VoidTool) -> ToolReply:
        """End a call for good, because its job ends."""
        _check_key(ask.key, f"{ask.tenant}/{ask.job_id}/{ask.step}/{ask.call}")
        return await self.calls.void(CallTool.model_validate({"tenant": ask.tenant, **ask.model_dump()}))

    async def resolve_tool(self, ask: ResolveTool) -> ToolReply:
        """Write down what a person decided about an unknown outcome; a result that is there already wins."""
        _check_key(ask.key, ask.tenant)
        if ask.key.count("/") < KEY_PARTS_MIN - 1:
            raise Reject(f"the key {ask.key!r} is no `<tenant>/<job>/<step>/<call>`", code="invalid_key", status=422)
        decided = _decided(ask)
        if await self.ledger.resolve(ask.tenant, ask.key, job_id=ask.key.split("/")[1], reply=decided):
            return decided
        stored = await self.ledger.stored(ask.tenant, ask.key)
        return stored.model_copy(update={"repeated": True})


def _decided(ask: ResolveTool) -> ToolReply:
    if ask.outcome == "succeeded":
        size = len(ask.content.encode())
        told = {"size_bytes": size, "tokens": estimate(ask.content), "strangers": False}
        return ToolReply(status="success", content=ask.content, **told)
    message = ask.content or "a person found that this call did not take effect"
    return ToolReply(status="failed", error=ToolError(code="tool_failed", message=message), strangers=False)


def _check_key(key: str, prefix: str) -> None:
    if key != prefix and not key.startswith(f"{prefix}/"):
        raise Reject(f"the key {key!r} must begin with {prefix!r}", code="invalid_key", status=422)
    if "\0" in key:
        # Postgres has no column that could hold it: the ledger would never answer.
        raise Reject(f"the key {key!r} holds a NUL character", code="invalid_key", status=422)
