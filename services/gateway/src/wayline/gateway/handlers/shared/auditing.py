"""Every change of configuration is written down, before it is made and with what came of it.

One dependency stands before all operations whose address begins so; an operation is named where it changes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextvars import ContextVar
from typing import Annotated, Any, Final

import structlog
from fastapi import APIRouter, Depends, Request, Response
from fastapi.exceptions import RequestValidationError
from opentelemetry import trace

from wayline.contracts.errors import Reject
from wayline.contracts.ids import is_tenant
from wayline.gateway.adapters.audit_log import Outcome, Trail
from wayline.gateway.handlers.shared.dependencies import Gateway, GatewayDependency, identify
from wayline.gateway.keys import Caller
from wayline.gateway.openapi import scopes_of
from wayline.store import PostgresUnavailable

log = structlog.get_logger()

KINDS: Final = {
    "/v1/agents": "agent",
    "/v1/models": "model",
    "/v1/budgets": "budget",
    "/v1/settings": "settings",
    "/v1/schedules": "schedule",
    "/v1/prompts": "prompt",
    "/v1/mcp/servers": "server",
    "/v1/mcp/secrets": "secret",
    "/v1/tenants": "tenant",
    "/v1/replicas": "replica",
    "/v1/pauses": "pause",
    "/v1/running-limits": "limit of running jobs",
    "/v1/keys": "API key",
    "/v1/memories": "memory",
    "/v1/insights": "insight",
    "/v1/subjects": "subject",
    "/v1/documents": "document",
    "/v1/vector-sets": "vector set",
    "/v1/webhooks": "webhook",
    "/v1/jobs/{job_id}/approvals": "approval",
    "/v1/dead-letters/{sequence}": "dead letter",
    "/v1/forget": "erasure",
}
"""What is changed below each address."""
EXACTLY: Final = {"/v1/jobs/{job_id}": "erasure"}
"""What is changed at an address and not below it."""
CHANGES_NOTHING: Final = {
    "/v1/agents/{name}/check",
    "/v1/mcp/servers/test",
    "/v1/mcp/servers/{name}/test",
    "/v1/mcp/servers/{name}/impact",
    "/v1/mcp/servers/{name}/prompts/{prompt}",
    "/v1/memories/recall",
    "/v1/insights/recall",
    # It submits a job, whose log says so.
    "/v1/schedules/{name}/run",
}
"""What is asked for with POST all the same."""
READS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
END_WITHIN_S: Final = 5.0

_trail: ContextVar[Trail | None] = ContextVar("change under way", default=None)


def kind_of(path: str) -> str | None:
    """Return what an operation changes, by the template of its address; None: nothing that is written down."""
    if path in CHANGES_NOTHING:
        return None
    if path in EXACTLY:
        return EXACTLY[path]
    return next((kind for start, kind in KINDS.items() if path == start or path.startswith(f"{start}/")), None)


def is_audited(router: APIRouter) -> bool:
    """Return whether some operation of a router changes configuration."""
    return any(kind_of(getattr(route, "path_format", "")) for route in router.routes)


def trail() -> Trail | None:
    """Return what is known of the change that this request makes."""
    return _trail.get()


def note_change(*, name: str | None = None, detail: str = "") -> None:
    """Say what is changed, where the address does not."""
    if (known := _trail.get()) is not None:
        known.name = name or known.name
        known.detail = detail or known.detail


async def note_tenant(gateway: Gateway, tenant: str) -> None:
    """Say whose the changed thing is, before it is changed, where the address does not."""
    if (known := _trail.get()) is not None and known.tenant != tenant:
        await gateway.audit.move(known, tenant)


async def audited(
    request: Request,
    response: Response,
    gateway: GatewayDependency,
    caller: Annotated[Caller, Depends(identify)],
) -> AsyncGenerator[None]:
    """Write a change down before it is made, and then what came of it."""
    route: Any = request.scope.get("route")
    path: str = getattr(route, "path_format", "")
    kind = kind_of(path)
    needed = scopes_of(route.dependant) if kind is not None else ()
    if kind is None or request.method in READS or (needed and caller.scopes.isdisjoint(needed)):
        yield
        return
    known = await _begun(gateway, caller, request, kind=kind, operation=route.name)
    _trail.set(known)
    try:
        yield
    except (Reject, RequestValidationError) as error:
        await _ended(gateway, known, "refused", code=getattr(error, "code", "invalid_request"))
        raise
    except (Exception, asyncio.CancelledError) as error:
        await _ended(gateway, known, "failed", code=getattr(error, "code", type(error).__name__))
        raise
    else:
        known.after = response.headers.get("etag")
        await _ended(gateway, known, "made", code=None)
    finally:
        _trail.set(None)


async def _begun(gateway: Gateway, caller: Caller, request: Request, *, kind: str, operation: str) -> Trail:
    span = trace.get_current_span().get_span_context()
    tenant = str(request.path_params.get("tenant", caller.tenant))
    if not caller.is_operator or not is_tenant(tenant):
        tenant = caller.tenant
    return await gateway.audit.begin(
        caller,
        # What an operator does to a tenant is in that tenant's log.
        tenant=tenant,
        kind=kind,
        # As the client wrote it: whether that is a name at all is looked at after this.
        name="/".join(map(str, request.path_params.values())).replace("\x00", "\ufffd"),
        operation=operation,
        trace_id=f"{span.trace_id:032x}" if span.is_valid else None,
    )


async def _ended(gateway: Gateway, known: Trail, outcome: Outcome, *, code: str | None) -> None:
    """Write down what came of a change; where that cannot be, its row says that nobody knows."""
    try:
        async with asyncio.timeout(END_WITHIN_S):
            await asyncio.shield(gateway.audit.end(known, outcome, code=code))
    except (PostgresUnavailable, TimeoutError) as error:
        log.error("what came of a change is not written down", kind=known.name, id=known.id, error=str(error))
