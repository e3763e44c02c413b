"""The OpenAPI description: every operation names the problems it may answer with."""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute
from pydantic import TypeAdapter
from starlette.routing import BaseRoute

from wayline.contracts.events import AnyEvent
from wayline.contracts.jobs import Delta, QueuePlace
from wayline.contracts.progress import Progress
from wayline.gateway.openai.error_shape import OpenAIError
from wayline.gateway.problem_answers import MEDIA_TYPE, HttpProblem

EVENT = {"$ref": "#/components/schemas/Event"}
"""An event of a job's log."""
STREAMED = {
    "anyOf": [EVENT, *({"$ref": f"#/components/schemas/{name}"} for name in ("Delta", "Progress", "QueuePlace"))]
}
"""What an event stream of a job carries."""
SCOPES_OF_CHECK = "wayline_scopes"
"""On the dependency that requires scopes of a key: which, one of them being enough."""
SCOPES = "x-wayline-scopes"
"""On an operation: the scopes of a key of which it needs one."""
_OPENAI_ERROR = {"$ref": "#/components/schemas/OpenAIError"}
_PROBLEM = {"$ref": "#/components/schemas/HttpProblem"}
_ETAG = {
    "description": "Of what was saved, for `If-Match`: figures that change by themselves are not part of it.",
    "schema": {"type": "string"},
}
_EVERYWHERE = (401, 403, 422, 429, 500, 503)
"""No operation is free of these."""


def event_stream(data: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of each event of a stream, whose `data` is JSON of this schema."""
    content = {"type": "string", "contentMediaType": "application/json", "contentSchema": data}
    named = {"event": {"type": "string"}, "id": {"type": "string"}, "data": content}
    return {"type": "object", "required": ["event", "data"], "properties": named}


def fails(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the error answers of an operation."""
    return {status: _answer(status) for status in sorted({*statuses, *_EVERYWHERE})}


def fails_as_openai(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the error answers of an operation that speaks OpenAI's API."""
    shown = {"application/json": {"schema": _OPENAI_ERROR}}
    return {status: {**answer, "content": shown} for status, answer in fails(*statuses).items()}


def tags(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the answers of an operation that shows configuration, and of one that changes it where something fails."""
    return {200: {"headers": {"ETag": _ETAG}}, **fails(*statuses)}


def _answer(status: int) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "description": HTTPStatus(status).phrase,
        "content": {MEDIA_TYPE: {"schema": _PROBLEM}},
    }
    if status in {429, 503}:
        answer["headers"] = {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}}}
    return answer


def describe(app: FastAPI) -> dict[str, Any]:
    """Return FastAPI's description, completed: the problem's schema, and none of FastAPI's own error shapes."""
    description = app.openapi()
    schemas = description.setdefault("components", {}).setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    problem = HttpProblem.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas.update(problem.pop("$defs", {}))
    schemas["HttpProblem"] = problem
    openai = OpenAIError.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas.update(openai.pop("$defs", {}))
    schemas["OpenAIError"] = openai
    _add_events(schemas)
    _add_scopes(app.routes, description["paths"])
    return description


def _add_events(schemas: dict[str, Any]) -> None:
    """Add what streams carry; FastAPI sees the models of requests and answers only."""
    for name, kind in (
        ("Event", TypeAdapter(AnyEvent)),
        ("Delta", TypeAdapter(Delta)),
        ("Progress", TypeAdapter(Progress)),
        ("QueuePlace", TypeAdapter(QueuePlace)),
    ):
        described = kind.json_schema(ref_template="#/components/schemas/{model}")
        for part, schema in described.pop("$defs", {}).items():
            schemas.setdefault(part, schema)
        schemas[name] = described


def _add_scopes(routes: Iterable[BaseRoute], paths: dict[str, Any]) -> None:
    """Say of each operation which scope of a key it needs."""
    for route in routes:
        if (included := getattr(route, "original_router", None)) is not None:
            _add_scopes(included.routes, paths)
        if not isinstance(route, APIRoute):
            continue
        scopes = scopes_of(route.dependant)
        for method in (route.methods or ()) if scopes else ():
            operation = paths.get(route.path_format, {}).get(method.lower())
            if operation is not None:
                needs = f"Needs the scope {' or '.join(f'`{scope}`' for scope in scopes)}."
                operation[SCOPES] = list(scopes)
                operation["description"] = f"{operation.get('description', '')}\n\n{needs}".strip()


def scopes_of(dependant: Any) -> tuple[str, ...]:
    """Return the scopes that an operation's dependencies require."""
    own = getattr(dependant.call, SCOPES_OF_CHECK, ())
    return own or next((found for below in dependant.dependencies if (found := scopes_of(below))), ())
