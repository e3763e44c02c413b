"""The bridge answers each request of its client, whatever the gateway makes of it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest

from wayline.standalone.commands.mcp_bridge import Bridge

REQUEST = {"jsonrpc": "2.0", "id": 7, "method": "tools/list"}
RESULT = {"jsonrpc": "2.0", "id": 7, "result": {"tools": []}}
EVENTS = {"content-type": "text/event-stream"}
NEWS = b'data: {"jsonrpc":"2.0","method":"notifications/progress"}\n\n'


async def answers(response: httpx2.Response, *asked: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what a client hears that asks a gateway which answers so."""
    written: list[dict[str, Any]] = []
    bridge = Bridge(SimpleNamespace(url="http://gateway", key=""), written.append)
    bridge._http = httpx2.AsyncClient(transport=httpx2.MockTransport(lambda _: response))

    async def lines() -> AsyncIterator[bytes]:
        for one in asked:
            yield json.dumps(one).encode()

    await bridge.run(lines())
    return written


@pytest.mark.parametrize(
    ("response", "why"),
    [
        (httpx2.Response(200, text="<html>", headers={"content-type": "text/html"}), "no JSON"),
        (httpx2.Response(200, content=NEWS, headers=EVENTS), "too early"),
        (httpx2.Response(429, json={"detail": "later"}), "later"),
        (httpx2.Response(202), "too early"),
    ],
)
async def test_a_request_without_an_answer_gets_an_error(response: httpx2.Response, why: str):
    told = await answers(response, REQUEST)

    assert told[-1]["id"] == 7
    assert why in told[-1]["error"]["message"]


async def test_an_answer_is_passed_on_and_a_notification_gets_none():
    assert await answers(httpx2.Response(200, json=RESULT), REQUEST) == [RESULT]
    assert await answers(httpx2.Response(202), {"jsonrpc": "2.0", "method": "notifications/initialized"}) == []
