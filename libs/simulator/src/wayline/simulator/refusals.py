"""What a provider refuses, in its own shape.

Refusal
├── rejected()      400, the request is wrong
├── unknown_model()
├── unknown_names() 400, Google's: fields that it does not know
├── too_large()     413
└── broken()        429, 500, 529: an injected fault
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from wayline.simulator.scripts.faults import Fault
from wayline.simulator.scripts.script import Wire


class Refusal(Exception):
    """A request that is not answered."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        kind: str = "invalid_request_error",
        param: str | None = None,
        code: str | None = None,
        retry_after_s: float | None = None,
        violations: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.kind = kind
        self.param = param
        self.code = code
        self.retry_after_s = retry_after_s
        self.violations = violations
        """Google's: each wrong field in a sentence of its own."""

    @property
    def headers(self) -> dict[str, str]:
        return {} if self.retry_after_s is None else {"retry-after": str(math.ceil(self.retry_after_s))}


def as_body(refusal: Refusal, wire: Wire, request_id: str) -> dict[str, Any] | list[dict[str, Any]]:
    """Return the error as the provider writes it."""
    if refusal.violations:
        return [{"error": _google(refusal)}]
    if wire == "anthropic":
        error = {"type": refusal.kind, "message": refusal.message}
        return {"type": "error", "error": error, "request_id": request_id}
    error = {"message": refusal.message, "type": refusal.kind, "param": refusal.param, "code": refusal.code}
    return {"error": error}


def _google(refusal: Refusal) -> dict[str, Any]:
    fields = [{"description": violation} for violation in refusal.violations]
    details = [{"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": fields}]
    return {"code": refusal.status, "message": refusal.message, "status": "INVALID_ARGUMENT", "details": details}


def unknown_names(found: Sequence[tuple[str, str]]) -> Refusal:
    """Refuse fields by their name and the place that they stand at, as Google's endpoint does."""
    begun = "Invalid JSON payload received. Unknown name"
    violations = tuple(
        f'{begun} "{name}"{f" at {place!r}" if place else ""}: Cannot find field.' for name, place in found
    )
    return Refusal("\n".join(violations), violations=violations)


def unknown_model(wire: Wire, model: object) -> Refusal:
    if wire == "anthropic":
        return Refusal(f"model: {model}", status=404, kind="not_found_error")
    if wire == "openai":
        # Recorded so: Responses answers 400, Chat Completions and Embeddings 404.
        message = f"The requested model '{model}' does not exist."
        return Refusal(message, param="model", code="model_not_found")
    message = f"The model `{model}` does not exist or you do not have access to it."
    return Refusal(message, status=404, code="model_not_found")


def too_large() -> Refusal:
    """Refuse more than Messages accepts at once, before it is read."""
    return Refusal("Request exceeds the maximum size", status=413, kind="request_too_large")


def broken(fault: Fault, wire: Wire) -> Refusal:
    """Make an injected error response."""
    shapes = _ANTHROPIC if wire == "anthropic" else _OPENAI
    status, kind, code, message = shapes[fault.error or "server_error"]
    if fault.status == 400:
        kind = "invalid_request_error"
    return Refusal(message, status=fault.status or status, kind=kind, code=code, retry_after_s=fault.retry_after_s)


_ANTHROPIC: dict[str, tuple[int, str, None, str]] = {
    "rate_limited": (429, "rate_limit_error", None, "This request would exceed your organization's rate limit."),
    "spend_cap": (
        429,
        "rate_limit_error",
        None,
        "You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC.",
    ),
    "overloaded": (529, "overloaded_error", None, "Overloaded"),
    "server_error": (500, "api_error", None, "Internal server error"),
}
_OPENAI: dict[str, tuple[int, str, str | None, str]] = {
    "rate_limited": (429, "requests", "rate_limit_exceeded", "Rate limit reached. Please try again later."),
    "spend_cap": (
        429,
        "insufficient_quota",
        "insufficient_quota",
        "You exceeded your current quota, please check your plan and billing details.",
    ),
    "overloaded": (503, "server_error", None, "The server is currently overloaded. Please try again later."),
    "server_error": (500, "server_error", None, "The server had an error while processing your request."),
}
