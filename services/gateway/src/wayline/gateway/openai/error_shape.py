"""Errors as OpenAI clients read them: `{"error": {"message", "type", "param", "code"}}`."""

from __future__ import annotations

import math
from http import HTTPStatus
from typing import Any, Final

from fastapi.responses import Response
from pydantic import BaseModel, Field

from wayline.contracts.errors import Problem
from wayline.contracts.jobs import Failure, JobView, Status

PREFIX: Final = "/openai/"
"""Every error below it has this shape."""
NEVER_AGAIN: Final = {"x-should-retry": "false"}
"""OpenAI's clients send again what failed with 409, 429 or 5xx, unless this says that it cannot help."""
_TYPES: Final = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
_CODES: Final = {
    "unknown_agent": "model_not_found",
    "unknown_label": "model_not_found",
    "unauthorized": "invalid_api_key",
    "input_too_long": "context_length_exceeded",
    "context_too_long": "context_length_exceeded",
}
"""The names that OpenAI's clients know, by ours."""
_PARAMS: Final = {
    "unknown_agent": "model",
    "unknown_label": "model",
    "invalid_output_schema": "response_format",
    "input_too_long": "messages",
    "context_too_long": "messages",
    "client_tools_refused": "tools",
}
_BAD_REQUESTS: Final = frozenset(
    {
        *("input_too_long", "context_too_long", "invalid_output_schema"),
        *("model_unfit", "unknown_document", "client_tools_refused"),
    }
)
_UNPAID: Final = frozenset({"budget_exhausted", "budget_too_small", "price_unknown"})


class ErrorDetail(BaseModel):
    """What is wrong, and with which parameter."""

    message: str
    type: str = Field(
        description="`invalid_request_error`, `authentication_error`, `rate_limit_error`, `server_error` …"
    )
    param: str | None = Field(default=None, description="The field of the request that is wrong.")
    code: str | None = Field(default=None, description="For programs: OpenAI's word where there is one, else ours.")


class OpenAIError(BaseModel):
    """An error in OpenAI's shape."""

    error: ErrorDetail


def error_of(problem: Problem, *, param: str | None = None) -> OpenAIError:
    """Return a problem in OpenAI's shape."""
    kind = "server_error" if problem.status >= HTTPStatus.INTERNAL_SERVER_ERROR else "invalid_request_error"
    if problem.code in _UNPAID:
        kind = "insufficient_quota"
    detail = ErrorDetail(
        message=problem.detail,
        type=_TYPES.get(problem.status, kind) if problem.code not in _UNPAID else kind,
        param=param or _PARAMS.get(problem.code),
        code=_CODES.get(problem.code, problem.code),
    )
    return OpenAIError(error=detail)


def error_response(problem: Problem, *, param: str | None = None, headers: dict[str, str] | None = None) -> Response:
    """Return a problem as an answer in OpenAI's shape, with `Retry-After` where the request may be sent again."""
    retry = {} if problem.retry_after_s is None else {"Retry-After": str(math.ceil(problem.retry_after_s))}
    body = error_of(problem, param=param).model_dump_json()
    return Response(body, problem.status, headers={**retry, **(headers or {})}, media_type="application/json")


def problem_of(job: JobView) -> Problem:
    """Return why a job that has ended has no answer; to ask again would return the same."""
    if job.status is Status.CANCELLED:
        why = f": {job.reason}" if job.reason else ""
        return Problem(
            code="job_cancelled", title="cancelled", detail=f"job {job.job_id} was cancelled{why}", status=409
        )
    failure = job.error or Failure(code="failed", message="the job failed")
    return Problem(code=failure.code, title="failed", detail=failure.message, status=_status(failure.code))


def _status(code: str) -> int:
    if code in _UNPAID:
        return HTTPStatus.TOO_MANY_REQUESTS
    if _CODES.get(code) == "model_not_found":
        return HTTPStatus.NOT_FOUND
    if code in _BAD_REQUESTS:
        return HTTPStatus.BAD_REQUEST
    return HTTPStatus.INTERNAL_SERVER_ERROR


def extension_of(job: JobView) -> dict[str, Any]:
    """Return what our answers say beyond OpenAI's: which job it was, how it stands, what it cost."""
    told: dict[str, Any] = {"job_id": job.job_id, "status": str(job.status)}
    told["cost_usd"] = None if job.cost_usd is None else f"{job.cost_usd:f}"
    if job.partial:
        told |= {"partial": True, "reason": job.reason}
    if job.citations:
        told["citations"] = [citation.model_dump(mode="json") for citation in job.citations]
    return told
