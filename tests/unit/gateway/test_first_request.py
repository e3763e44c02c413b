"""The first request of a gateway is answered as fast as the next one: its routes are ready before the port opens."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

import pydantic
import pytest

from wayline.gateway.application import application
from wayline.gateway.settings import Settings


@pytest.mark.slow
async def test_the_first_request_reads_no_parameters_of_handlers(monkeypatch: pytest.MonkeyPatch) -> None:
    gateway = MagicMock()
    # A size that no other test has: the routes of one size are worked out once a process.
    gateway.settings, gateway.telemetry.provider = Settings(body_max_bytes=1_234_567), None
    app = application(gateway)
    read: list[Any] = []
    make = pydantic.TypeAdapter.__init__

    def noted(self: Any, of: Any, **more: Any) -> None:
        read.append(of)
        make(self, of, **more)

    monkeypatch.setattr(pydantic.TypeAdapter, "__init__", noted)
    assert await status_of(app, "/v1/nothing") == 404
    assert read == []


async def status_of(app: Any, path: str) -> int:
    """Ask an application for a path, without a socket; return the status."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "query_string": b""}
    where = {"http_version": "1.1", "scheme": "http", "server": ("gateway", 80), "client": ("127.0.0.1", 1)}
    await app(scope | where | {"headers": [], "root_path": ""}, receive, send)
    return sent[0]["status"]
