"""The HTTP application: every route, one shape for errors, one span a request."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from threading import Lock
from typing import Any

from fastapi import APIRouter, Depends, FastAPI
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute

from wayline.gateway import problem_answers
from wayline.gateway.handlers import operations, overview
from wayline.gateway.handlers.administration import (
    audit,
    budgets,
    keys,
    limits,
    models,
    replicas,
    run_controls,
    settings,
    tenants,
    webhooks,
)
from wayline.gateway.handlers.jobs import (
    approvals,
    events,
    export_jobs,
    feedback,
    forgetting,
    jaeger,
    jobs,
    otlp,
    schedules,
    sessions,
    tenant_events,
    tool_results,
    traces,
)
from wayline.gateway.handlers.knowledge import documents, files, passages, vector_sets
from wayline.gateway.handlers.mcp import authorization, http_call
from wayline.gateway.handlers.mcp import route as mcp
from wayline.gateway.handlers.mcp.direct_calls import DirectCalls
from wayline.gateway.handlers.memory import insights, memories, subjects, told_memories
from wayline.gateway.handlers.openai import chat, embeddings, responses
from wayline.gateway.handlers.openai import models as openai_models
from wayline.gateway.handlers.openai.abandoned_jobs import AbandonedJobs
from wayline.gateway.handlers.recovery import dead_letters, job_actions, time_travel
from wayline.gateway.handlers.shared.auditing import audited, is_audited
from wayline.gateway.handlers.shared.dependencies import Gateway
from wayline.gateway.handlers.tools import (
    agent_labels,
    agent_versions,
    agents,
    browser_logins,
    import_servers,
    mcp_logins,
    mcp_resources,
    mcp_secrets,
    mcp_servers,
    prompts,
    tool_page,
    tools,
)
from wayline.gateway.head_requests import HeadRequests
from wayline.gateway.openapi import describe
from wayline.gateway.page_access import PageAccess
from wayline.gateway.path_index import PathIndex
from wayline.gateway.request_middleware import PROBED, RequestMiddleware

MODULES = (
    mcp,
    authorization,
    # Before the jobs, whose ids may be any word.
    export_jobs,
    job_actions,
    jobs,
    tool_results,
    forgetting,
    approvals,
    events,
    feedback,
    tenant_events,
    time_travel,
    sessions,
    schedules,
    webhooks,
    traces,
    jaeger,
    otlp,
    budgets,
    # Before the documents, whose ids may hold slashes.
    passages,
    documents,
    vector_sets,
    files,
    memories,
    insights,
    subjects,
    told_memories,
    agents,
    agent_labels,
    agent_versions,
    tools,
    http_call,
    # Behind those, whose words could be names of tools.
    tool_page,
    settings,
    models,
    # Before the servers, whose names may be any word.
    import_servers,
    mcp_servers,
    mcp_logins,
    browser_logins,
    mcp_resources,
    mcp_secrets,
    prompts,
    tenants,
    limits,
    replicas,
    run_controls,
    keys,
    dead_letters,
    openai_models,
    chat,
    responses,
    embeddings,
    overview,
    audit,
    operations,
)
"""Whose routes it has: of two that fit a path the first one takes it."""


def application(gateway: Gateway) -> RequestMiddleware:
    """Return the whole front door as one ASGI application."""
    bodies = gateway.settings.body_max_bytes, gateway.settings.document_max_bytes
    telemetry = {
        "tracer_provider": gateway.telemetry.provider,
        "metrics": False,
        "logs": False,
        "operation_spans": False,
        "auto_configure": False,
        "exclude": lambda scope: scope.get("path", "").startswith(PROBED),
    }
    found = routes(*bodies)
    app = _fastapi(gateway.settings.body_max_bytes, [PathIndex(found)], telemetry=telemetry)
    app.openapi = partial(_description, *bodies)  # pyright: ignore[reportAttributeAccessIssue]
    app.state.gateway = gateway
    app.state.mcp = mcp.McpRoute(gateway)
    app.state.tool_calls = DirectCalls(gateway)
    app.state.abandoned_jobs = AbandonedJobs(gateway)
    app.state.span_turns = otlp.span_turns()
    app.state.search_turns = traces.search_turns()
    problem_answers.install(app, found)
    doors = PageAccess(app, gateway.settings.mcp_origins, api_origins=gateway.settings.cors_origins)
    return RequestMiddleware(HeadRequests(doors), access_log=gateway.settings.access_log)


def _fastapi(body_max_bytes: int, its_routes: Sequence[BaseRoute], **more: Any) -> FastAPI:
    return FastAPI(
        title="Wayline",
        version="1",
        summary="AI agents as durable jobs on a message bus, every step traced and priced.",
        # The route of our own works it out on a thread.
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        routes=list(its_routes),
        # The names of the functions, and one schema a class: what generated clients are made of.
        generate_unique_id_function=_name_of,
        separate_input_output_schemas=False,
        max_body_size=body_max_bytes,
        **more,
    )


_describing = Lock()


def _description(body_max_bytes: int, document_max_bytes: int) -> dict[str, Any]:
    """Return the OpenAPI description: most of a second, once a process."""
    with _describing:
        return _described(body_max_bytes, document_max_bytes)


@cache
def _described(body_max_bytes: int, document_max_bytes: int) -> dict[str, Any]:
    return describe(_fastapi(body_max_bytes, routes(body_max_bytes, document_max_bytes)))


@cache
def routes(body_max_bytes: int, document_max_bytes: int) -> tuple[BaseRoute, ...]:
    """Return every route; a process that makes several applications works them out once."""
    router = APIRouter(generate_unique_id_function=_name_of, max_body_size=body_max_bytes)
    for module in MODULES:
        changes = [Depends(audited, scope="function")] if is_audited(module.router) else None
        router.include_router(module.router, dependencies=changes)
    router.include_router(
        documents.uploads, max_body_size=document_max_bytes, dependencies=[Depends(audited, scope="function")]
    )
    for route in router.routes:
        # FastAPI reads the handlers' parameters when it first looks for a path: half a second of the first request.
        route.matches({"type": "http", "method": "GET", "path": ""})
    return tuple(router.routes)


def _name_of(route: APIRoute) -> str:
    return route.name
