"""A line a request: what it was, whose, how it ended; nothing that it held."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import pytest
from structlog.testing import capture_logs

from wayline.gateway.keys import IDENTITY, Caller
from wayline.gateway.request_middleware import RequestMiddleware

SECRET = "s3cr3t"


class Route:
    path = "/v1/jobs/{job_id}"


async def lines(path: str, *, on: bool = True) -> list[dict[str, Any]]:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        scope["route"] = Route()
        scope["state"][IDENTITY] = Caller("acme", SECRET, key_id="1f2e")
        await send({"type": "http.response.start", "status": HTTPStatus.NOT_FOUND, "headers": []})

    async def nothing(*_: Any) -> Any:
        return {"type": "http.disconnect"}

    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "query_string": f"code={SECRET}".encode(),
        "headers": [(b"authorization", f"Bearer {SECRET}".encode())],
    }
    with capture_logs() as logged:
        await RequestMiddleware(app, access_log=on)(scope, nothing, nothing)
    return [dict(line) for line in logged]


async def test_a_request_is_one_line_without_what_it_holds():
    [line] = await lines(f"/v1/jobs/{SECRET}")

    assert line.pop("duration_ms") >= 0
    # A number in every log, whatever the handler answered with.
    assert repr(line["status"]) == "404"
    assert line == {
        "event": "request",
        "log_level": "info",
        "method": "GET",
        "route": "/v1/jobs/{job_id}",
        "status": 404,
        "tenant": "acme",
        "key": "1f2e",
        "trace_id": None,
    }
    assert SECRET not in str(line)


@pytest.mark.parametrize(("path", "on"), [("/health/live", True), ("/metrics", True), ("/v1/jobs/j1", False)])
async def test_probes_and_a_log_that_is_off_leave_no_line(path: str, *, on: bool):
    assert await lines(path, on=on) == []
