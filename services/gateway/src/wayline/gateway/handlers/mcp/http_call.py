"""One call of a tool over HTTP, by a program or a person: the same mechanism as over `/mcp`, with a key of its own."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final, Literal, TypeAlias

from fastapi import APIRouter, Depends, Header, Path, Request, Response
from opentelemetry import trace
from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from pydantic_core import from_json

from wayline.contracts.base import Usd
from wayline.contracts.chat import Citation, ToolImage
from wayline.contracts.errors import NotFound, Reject, Unavailable
from wayline.contracts.tools import (
    CallTool,
    CancelTool,
    Effect,
    ListTools,
    ToolDefinition,
    ToolList,
    ToolReply,
)
from wayline.gateway.errors import ApprovalNeeded, CallKeyReused, Forbidden, KeyNeeded
from wayline.gateway.handlers.mcp.call_ids import CallIds
from wayline.gateway.handlers.mcp.direct_calls import DirectCalls
from wayline.gateway.handlers.mcp.paid_calls import KEY_CONFLICT
from wayline.gateway.handlers.mcp.tool_rights import AGENT_TOOLS, is_offered, needs_approval
from wayline.gateway.handlers.shared.dependencies import Gateway, GatewayDependency, acting_as, allowed
from wayline.gateway.keys import Caller
from wayline.gateway.openapi import fails
from wayline.gateway.parameters import Wait
from wayline.gateway.shapes.body import Body, Label
from wayline.gateway.strict_json import StrictRoute
from wayline.telemetry import names

router = APIRouter(prefix="/v1/tools", tags=["agents"], route_class=StrictRoute)

STEP: Final = 1
CALL: Final = "1"
ToolCaller = Annotated[Caller, Depends(allowed("tools"))]
CallKey: TypeAlias = Annotated[
    Annotated[str, StringConstraints(min_length=1, max_length=255, pattern=r"^[\x20-\x7e]+$")] | None,
    Header(
        alias="Idempotency-Key",
        description="The same key with the same body is the same call; with another body it is a 409.",
    ),
]


class ToolCallBody(Body):
    """What a tool is called with."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"arguments": {"query": "when is high water?"}}]})

    arguments: dict[str, Any] = Field(default_factory=dict)
    user_id: Label | None = Field(
        default=None, description="Whom the call is for, as jobs name their user; needs `write`."
    )


class CallProblem(BaseModel):
    """Why a call did not succeed."""

    code: str
    message: str


class ToolCallResult(BaseModel):
    """What became of a call."""

    status: Literal["success", "failed", "unknown", "in_progress"] = Field(
        description="`unknown`: nobody knows whether it took effect; `in_progress`: it runs on, ask again with its key."
    )
    tool: str
    effect: Effect
    text: str = Field(default="", description="The result as a model reads it.")
    content: tuple[dict[str, Any], ...] = Field(
        default=(), description="Its content blocks as its MCP server gave them; empty for built-in tools."
    )
    structured: Any = Field(default=None, description="Its structured content, where there is any.")
    images: tuple[ToolImage, ...] = Field(default=(), description="Of built-in tools.")
    citations: tuple[Citation, ...] = ()
    error: CallProblem | None = None
    untrusted: bool = Field(default=False, description="The words in it are those of strangers.")
    cost_usd: Usd | None = Field(default=None, description="What it charged; null: nothing, or nobody knows.")
    repeated: bool = Field(default=False, description="It is the stored result of an earlier call under the same key.")
    duration_ms: float = 0


@router.post(
    "/{name}/call",
    responses={202: {"model": ToolCallResult, "description": "It runs on"}, **fails(400, 402, 404, 409, 413)},
)
async def call_tool(
    *,
    name: Annotated[str, Path(pattern=r"^[A-Za-z0-9_.-]{1,128}$", examples=["search_knowledge"])],
    body: ToolCallBody,
    request: Request,
    response: Response,
    gateway: GatewayDependency,
    caller: ToolCaller,
    idempotency_key: CallKey = None,
    wait: Wait = None,
) -> ToolCallResult:
    """Call a tool once, and wait for its result, at most as long as is configured.

    A tool that does more than read, or charges, needs an `Idempotency-Key`: the same key with the same body is the same
    call, however often it is sent; with another body it is a 409. What takes longer runs on (202): send the same again.
    A call without a key is cancelled then.
    """
    user_id = acting_as(caller, body.user_id)
    if body.user_id is not None and caller.user_id is None and "write" not in caller.scopes:
        raise Forbidden("this API key lacks the scope 'write', which is needed to call tools for a user")
    tool = await _tool(gateway, caller, name)
    if idempotency_key is None and not tool.is_free_read:
        raise KeyNeeded(tool=name)
    span = trace.get_current_span()
    span.set_attribute(names.GEN_AI_TOOL_NAME, name)
    span.set_attribute(names.EFFECT, tool.effect)
    ids = CallIds.fresh() if idempotency_key is None else CallIds.of_key(caller.tenant, idempotency_key, user_id)
    asked = CallTool(
        tenant=caller.tenant,
        key=ids.tool_key(caller.tenant),
        job_id=ids.call_id,
        step=STEP,
        call=CALL,
        tool=name,
        arguments=body.arguments,
        deadline=datetime.now(UTC) + timedelta(seconds=tool.timeout_s),
        user_id=user_id,
        direct=True,
        form="whole",
    )
    most = gateway.settings.wait_max_s
    wait_s = most if wait is None else min(wait, most)
    reply = await _awaited(gateway, caller, request.app.state.tool_calls, asked, tool, wait_s=wait_s)
    if reply is None and idempotency_key is None:
        # Nobody can ask for its result any more, and it changes nothing.
        await gateway.bus.send(CancelTool(tenant=asked.tenant, key=asked.key))
        error = CallProblem(code="timeout", message=f"it took longer than {wait_s:g} s, and was cancelled")
        return ToolCallResult(status="failed", tool=name, effect=tool.effect, error=error)
    if reply is None:
        response.status_code = 202
        return ToolCallResult(status="in_progress", tool=name, effect=tool.effect)
    return _result(reply, tool)


async def _tool(gateway: Gateway, caller: Caller, name: str) -> ToolDefinition:
    """Return a tool that a key may call. Raises NotFound, Forbidden or ApprovalNeeded."""
    found = await gateway.bus.ask(ListTools(tenant=caller.tenant, patterns=(name,)), ToolList)
    tool = next((one for one in found.tools if one.name == name), None)
    if tool is None or name in AGENT_TOOLS:
        raise NotFound("tool", name)
    if not is_offered(tool, caller):
        raise Forbidden(f"this API key lacks the scope 'write', which is needed to call {name}: it does more than read")
    if needs_approval(tool):
        raise ApprovalNeeded(tool=name, how="POST /v1/jobs")
    return tool


async def _awaited(
    gateway: Gateway, caller: Caller, calls: DirectCalls, asked: CallTool, tool: ToolDefinition, *, wait_s: float
) -> ToolReply | None:
    """Return what became of a call; None: it runs on. Raises CallKeyReused, and what refuses it."""
    with gateway.streams.follower(caller) as follower:
        try:
            async with asyncio.timeout(wait_s):
                return await asyncio.shield(calls.begin(asked, tool))
        except TimeoutError:
            return None
        except asyncio.CancelledError:
            if not follower.absorb_stop():
                raise
            raise Unavailable("this gateway", detail="it is stopping") from None
        except Reject as error:
            if error.code != KEY_CONFLICT:
                raise
            raise CallKeyReused(named_by="this Idempotency-Key") from error


def _result(reply: ToolReply, tool: ToolDefinition) -> ToolCallResult:
    whole, error = reply.whole, None
    if reply.error is not None:
        error = CallProblem(code=reply.error.code, message=reply.error.message)
    elif reply.input is not None:
        message = f"{tool.name} asks a person something, which only a job can wait for: have an agent do this"
        error = CallProblem(code="needs_input", message=message)
    elif reply.status == "unknown":
        message = f"nobody knows whether this call of {tool.name} took effect: look before you call it again"
        error = CallProblem(code="unknown", message=message)
    return ToolCallResult(
        status="failed" if error is not None and reply.status == "success" else reply.status,
        tool=tool.name,
        effect=reply.effect,
        text=reply.content,
        content=whole.blocks if whole else (),
        structured=None if whole is None or whole.structured is None else from_json(whole.structured),
        images=reply.images if whole is None else (),
        citations=reply.citations,
        error=error,
        untrusted=tool.untrusted if reply.strangers is None else reply.strangers or tool.untrusted,
        cost_usd=reply.cost_usd,
        repeated=reply.repeated,
        duration_ms=reply.duration_ms,
    )
