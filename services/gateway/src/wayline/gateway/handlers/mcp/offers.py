"""The tools that a key may use over `/mcp`."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any, Final, Generic, TypeVar

from mcp_types import Tool, ToolAnnotations

from wayline.chassis import Bus
from wayline.chassis.concurrency.single_flight import SingleFlight
from wayline.contracts.agents import Agent, AgentList, ListAgents
from wayline.contracts.tool_details import ToolDetails
from wayline.contracts.tools import RUN_AGENT, Effect, ListTools, ToolDefinition, ToolList
from wayline.gateway.handlers.mcp.requests import McpRequest
from wayline.gateway.handlers.mcp.results import EFFECT, UNTRUSTED
from wayline.gateway.handlers.mcp.run_agent import JOB_OUTCOME, RunAgent, WaitForJob
from wayline.gateway.handlers.mcp.tool_rights import WAIT_FOR_JOB, is_offered, needs_approval
from wayline.gateway.keys import Caller

FRESH_S: Final = 1.0
"""How long a listing is believed: a newer client asks for it with every call."""
TENANTS_MAX: Final = 1_000
DESCRIPTION_MAX: Final = 200
"""Of an agent, in characters."""

T = TypeVar("T")


class Listing(Generic[T]):
    """What a service lists for each tenant, asked at most once a second."""

    def __init__(self, ask: Callable[[str], Coroutine[Any, Any, T]]) -> None:
        self._ask = ask
        self._known: dict[str, tuple[float, T]] = {}
        self._asking = SingleFlight[str, T]()

    async def of(self, tenant: str) -> T:
        """Return a tenant's listing. Raises Retry while the service is away."""
        until, known = self._known.get(tenant, (0.0, None))
        if known is not None and time.monotonic() < until:
            return known
        listed = await self._asking.fetch(tenant, partial(self._ask, tenant))
        if len(self._known) >= TENANTS_MAX:
            self._known.clear()
        self._known[tenant] = (time.monotonic() + FRESH_S, listed)
        return listed


class Offers:
    """The tools of the registry and the agents, by tenant and scope."""

    def __init__(self, bus: Bus) -> None:
        self._tools = Listing[ToolList](lambda tenant: bus.ask(ListTools(tenant=tenant, details=True), ToolList))
        self._agents = Listing[AgentList](lambda tenant: bus.ask(ListAgents(tenant=tenant), AgentList))

    async def listed(self, caller: Caller, *, objects_only: bool = False) -> list[Tool]:
        """List the tools that a key may use, sorted by name."""
        there = await self._tools.of(caller.tenant)
        offered = [
            _tool(tool, there.details.get(tool.name), objects_only=objects_only)
            for tool in there.tools
            if is_offered(tool, caller) and not needs_approval(tool)
        ]
        agents = (await self._agents.of(caller.tenant)).agents
        if chosen := tuple(agent for agent in agents if agent.config.over_mcp):
            offered += _agent_tools(chosen, caller)
        return sorted(offered, key=lambda tool: tool.name)

    async def find(self, caller: Caller, name: str) -> ToolDefinition | None:
        """Find a tool of the registry that a key may use."""
        tools = (await self._tools.of(caller.tenant)).tools
        return next((tool for tool in tools if tool.name == name and is_offered(tool, caller)), None)

    async def has_output_schema(self, request: McpRequest, name: str) -> bool:
        """Return whether a client is told what the structured content of a tool's results looks like."""
        details = (await self._tools.of(request.caller.tenant)).details.get(name)
        return details is not None and _output_schema(details, objects_only=request.objects_only) is not None

    async def withholds(self, caller: Caller, agent: str) -> bool:
        """Return whether an agent is one that MCP clients may not run."""
        agents = (await self._agents.of(caller.tenant)).agents
        return any(one.name == agent and not one.config.over_mcp for one in agents)

    async def schema_of(self, caller: Caller, name: str) -> Mapping[str, Any] | None:
        """Return the input schema of a tool of the registry that a key may use; those of agents name no headers."""
        tool = await self.find(caller, name)
        return None if tool is None else tool.input_schema


def _tool(tool: ToolDefinition, details: ToolDetails | None, *, objects_only: bool) -> Tool:
    reads = tool.effect is Effect.READ
    details = details or ToolDetails()
    meta: dict[str, Any] = {**details.meta, EFFECT: tool.effect.value}
    if tool.untrusted:
        meta[UNTRUSTED] = True
    return Tool(
        name=tool.name,
        title=details.title or None,
        description=tool.description,
        input_schema={"type": "object", **tool.input_schema},
        output_schema=_output_schema(details, objects_only=objects_only),
        annotations=ToolAnnotations(
            read_only_hint=reads,
            idempotent_hint=None if reads else tool.effect is not Effect.ONCE,
            destructive_hint=details.destructive,
            open_world_hint=details.open_world,
        ),
        _meta=meta,
    )


def _output_schema(details: ToolDetails, *, objects_only: bool) -> dict[str, Any] | None:
    """Return the schema of a tool's structured content; None: none that this client's protocol has room for."""
    schema = details.output_schema
    if schema is None or not isinstance(schema.get("$schema", ""), str) or (objects_only and not _is_object(schema)):
        return None
    return schema


def _is_object(schema: Mapping[str, Any]) -> bool:
    properties, required = schema.get("properties", {}), schema.get("required", [])
    return (
        schema.get("type") == "object"
        and isinstance(properties, dict)
        and all(isinstance(one, dict | bool) for one in properties.values())
        and isinstance(required, list)
        and all(isinstance(one, str) for one in required)
    )


def _agent_tools(agents: tuple[Agent, ...], caller: Caller) -> list[Tool]:
    wait = Tool(
        name=WAIT_FOR_JOB,
        title="Wait for a job",
        description="Wait for a job that run_agent began and that had not ended, and return its answer.",
        input_schema=WaitForJob.model_json_schema(),
        output_schema=JOB_OUTCOME,
        annotations=ToolAnnotations(read_only_hint=True),
    )
    if "write" not in caller.scopes:
        return [wait]
    schema = RunAgent.model_json_schema()
    schema["properties"]["agent"]["enum"] = [agent.name for agent in agents]
    described = [f"- {agent.name}: {text}" if (text := _one_line(agent)) else f"- {agent.name}" for agent in agents]
    run = Tool(
        name=RUN_AGENT,
        title="Run an agent",
        description="Give an agent a task and wait for its answer. The agents:\n" + "\n".join(described),
        input_schema=schema,
        output_schema=JOB_OUTCOME,
        annotations=ToolAnnotations(read_only_hint=False, open_world_hint=True),
    )
    return [run, wait]


def _one_line(agent: Agent) -> str:
    return " ".join(agent.config.description.split())[:DESCRIPTION_MAX]
