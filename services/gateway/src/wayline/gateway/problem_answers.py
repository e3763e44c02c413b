"""Every error as an RFC 9457 problem: one shape for validation, refusals, wrong addresses and outages."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from opentelemetry import trace
from pydantic import BaseModel, Field, ValidationError
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute

from wayline.contracts.base import plain
from wayline.contracts.errors import Bug, Problem, Unavailable, WaylineError
from wayline.gateway.errors import PreconditionFailed, RateLimited, UnsupportedParameter
from wayline.gateway.openai.error_shape import PREFIX, error_response
from wayline.store import PostgresUnavailable

log = structlog.get_logger()

CHALLENGE = "wayline.challenge"
"""In the scope of a request: the `WWW-Authenticate` of its 401, where it says more than `Bearer`."""
MEDIA_TYPE = "application/problem+json"
ERRORS_MAX = 50
"""Wrong fields named in one answer."""

_JSON = re.compile(r"\s*application/([^;]+\+)?json\s*(;|$)", re.IGNORECASE)
_CODES = {
    400: "bad_request",
    404: "not_found",
    405: "method_not_allowed",
    413: "body_too_large",
    422: "invalid_request",
}
"""Our own, because the phrases differ between versions of Python."""


class InvalidBody(Exception):
    """A body that was read by hand and does not fit its model."""

    def __init__(self, cause: ValidationError) -> None:
        super().__init__(str(cause))
        self.cause = cause


class WrongField(BaseModel):
    """One field of a request that is wrong, and how."""

    field: str = Field(description="Where it is, for instance `body.options.max_steps`.")
    message: str


class HttpProblem(Problem):
    """What is wrong, what to do, and whether to try again (RFC 9457)."""

    type: str = Field(description="`urn:wayline:problem:<code>`.")
    errors: tuple[WrongField, ...] = Field(default=(), description="Each wrong field, where the request is invalid.")
    instance: str | None = Field(default=None, description="The path of the request.")
    trace_id: str | None = Field(default=None, description="Of the request, as the gateway's spans have it.")


def problem_response(
    problem: Problem,
    *,
    errors: Sequence[WrongField] = (),
    headers: dict[str, str] | None = None,
    instance: str | None = None,
    param: str | None = None,
) -> Response:
    """Return a problem as an HTTP response, with `Retry-After` where the request may be retried.

    `param`: the field that is wrong, which OpenAI's clients are told by itself.
    """
    if instance is not None and instance.startswith(PREFIX):
        wrong = param or (errors[0].field.removeprefix("body.") if errors else None)
        return error_response(problem, param=wrong, headers=headers)
    asked = trace.get_current_span().get_span_context()
    body = HttpProblem(
        **problem.model_dump(),
        type=f"urn:wayline:problem:{problem.code}",
        errors=tuple(errors[:ERRORS_MAX]),
        instance=instance,
        trace_id=f"{asked.trace_id:032x}" if asked.is_valid else None,
    )
    retry = {} if problem.retry_after_s is None else {"Retry-After": str(math.ceil(problem.retry_after_s))}
    return Response(
        body.model_dump_json(exclude_none=True),
        status_code=problem.status,
        headers={**retry, **(headers or {})},
        media_type=MEDIA_TYPE,
    )


def status_problem(status: int, detail: str | None = None) -> Problem:
    """Return a problem for a bare HTTP status."""
    title = HTTPStatus(status).phrase
    return Problem(code=_CODES.get(status, f"http_{status}"), title=title, detail=detail or title, status=status)


def wrong_fields(errors: Sequence[Any], *, within: str = "") -> list[WrongField]:
    """Return pydantic's errors without the input that caused them: it may be large, and it may be secret."""
    return [_wrong_field(e, within=within) for e in errors]


def _wrong_field(error: Any, *, within: str = "") -> WrongField:
    field = ".".join(str(part) for part in ([within] if within else []) + list(error["loc"]))
    return WrongField(field=field, message=plain(error["msg"]))


def _no_json(error: Any) -> WrongField:
    """Return whether a body is not JSON: FastAPI reports the position as if it were a field."""
    if not error["loc"][-1]:
        return WrongField(field="body", message=plain(error["ctx"]["error"]))
    return WrongField(field="body", message=f"this is not JSON from character {error['loc'][-1]} on")


def invalid(errors: Sequence[WrongField], *, instance: str) -> Response:
    """Return the answer to a request with wrong fields."""
    detail = "; ".join(f"{error.field}: {error.message}" for error in errors[:5])
    problem = Problem(code="invalid_request", title="The request is not valid", detail=detail, status=422)
    return problem_response(problem, errors=errors, instance=instance)


def install(app: FastAPI, routes: Iterable[BaseRoute]) -> None:
    """Make the application, which has these routes, answer every exception with a problem."""

    async def on_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        headers = dict(error.headers or {})
        if error.status_code == 405:
            # The router knows only the methods of the first route that has this path.
            methods = methods_of(routes, getattr(request.scope.get("route"), "path_format", ""))
            headers["Allow"] = ", ".join(sorted(methods)) or headers.get("Allow", "")
        detail = error.detail
        if error.status_code == 404 and detail == HTTPStatus(404).phrase:
            detail = _no_address(request.method, request.url.path)
        return problem_response(status_problem(error.status_code, detail), headers=headers, instance=request.url.path)

    app.add_exception_handler(WaylineError, _on_known)
    app.add_exception_handler(RequestValidationError, _on_validation)
    app.add_exception_handler(InvalidBody, _on_body)
    app.add_exception_handler(HTTPException, on_http)
    app.add_exception_handler(PostgresUnavailable, _on_postgres)
    app.add_exception_handler(Exception, _on_anything)


def _no_address(method: str, path: str) -> str:
    """Return what is told of a path that no route has."""
    if path.startswith(PREFIX):
        where = "the base URL of OpenAI's clients ends with /openai/v1 here, and docs/openai.md lists what it has"
    else:
        where = "/docs lists all addresses, none of which ends with a slash"
    return f"nothing is at {method[:20]} {path[:200]}: {where}"


def methods_of(routes: Iterable[BaseRoute], path_format: str) -> set[str]:
    """Return the methods that a path takes, by all routes that are described and have it."""
    found = set[str]()
    for route in routes:
        if (included := getattr(route, "original_router", None)) is not None:
            found |= methods_of(included.routes, path_format)
        if getattr(route, "path_format", None) == path_format and getattr(route, "include_in_schema", False):
            found |= getattr(route, "methods", None) or set()
    return found


async def _on_known(request: Request, error: Exception) -> Response:
    assert isinstance(error, WaylineError)
    if isinstance(error, Bug):
        log.error("a bug", error=str(error), exc_info=error)
    headers = {"WWW-Authenticate": request.scope.get(CHALLENGE, "Bearer")} if error.status == 401 else None
    if isinstance(error, RateLimited | PreconditionFailed):
        headers = error.headers
    param = error.param if isinstance(error, UnsupportedParameter) else None
    return problem_response(error.problem(), headers=headers, instance=request.url.path, param=param)


async def _on_validation(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    errors = error.errors()
    if [tuple(e["loc"]) for e in errors] == [("body",)] and errors[0]["type"] != "missing":
        sent = request.headers.get("content-type", "")
        if not _JSON.match(sent):
            # Its bytes were not read as JSON, which says nothing of what they are.
            message = f"it is not sent as JSON but as {sent[:80]!r}: send `Content-Type: application/json`"
            return invalid([WrongField(field="body", message=message)], instance=request.url.path)
    return invalid(
        [_no_json(e) if e["type"] == "json_invalid" else _wrong_field(e) for e in errors],
        instance=request.url.path,
    )


async def _on_body(request: Request, error: Exception) -> Response:
    assert isinstance(error, InvalidBody)
    return invalid(
        wrong_fields(error.cause.errors(include_input=False, include_url=False), within="body"),
        instance=request.url.path,
    )


async def _on_postgres(request: Request, error: Exception) -> Response:
    assert isinstance(error, PostgresUnavailable)
    log.warning("Postgres is away", error=str(error))
    # Not the error's own words: they say where the database is.
    return problem_response(Unavailable("the database", detail=error.why).problem(), instance=request.url.path)


async def _on_anything(request: Request, error: Exception) -> Response:
    # Starlette raises the error again once this is sent, and the server logs it.
    detail = f"the gateway failed: {type(error).__name__}; see its log"
    return problem_response(
        Problem(code="bug", title="Internal Server Error", detail=detail, status=500), instance=request.url.path
    )
