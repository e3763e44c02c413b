"""Text of a call that failed is taken back: a reader of the stream over HTTP shows nothing twice."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2

from wayline.contracts.jobs import Delta
from wayline.gateway.settings import Settings as GatewaySettings
from wayline.simulator.chat_server import ChatServer, Say
from wayline.testkit import Platform

from .conftest import chatting

HALF, WHOLE = "The moon pulls the", "The moon pulls the sea towards it"
PACE_S = 0.06
"""Longer than text is held back: every word goes out by itself."""


class Reader:
    """Shows a job by the documented rule: text under its step and attempt, dropped when that attempt failed."""

    def __init__(self) -> None:
        self.shown: dict[tuple[int, int], str] = {}
        self.most: dict[tuple[int, int], str] = {}
        """What was shown of each call before it was taken back."""
        self.failed: list[dict[str, Any]] = []

    def take(self, event: str, data: dict[str, Any]) -> None:
        if event == "delta":
            call = (data["step"], data["attempt"])
            self.most[call] = self.shown[call] = self.shown.get(call, "") + data["text"]
        elif event == "model.failed":
            self.failed.append(data)
            self.shown.pop((data["step"], data["attempt"]), None)

    @property
    def text(self) -> str:
        return "".join(self.shown.values())


async def listen(platform: Platform, job_id: str) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    """The job's events as an EventSource hears them."""
    client = httpx2.AsyncClient(base_url=f"http://127.0.0.1:{platform.http_port}", timeout=30)
    headers = {"Accept": "text/event-stream"}
    async with client, client.stream("GET", f"/v1/jobs/{job_id}/events", headers=headers) as answer:
        assert answer.status_code == 200
        fields: dict[str, str] = {}
        async for line in answer.aiter_lines():
            name, _, value = line.partition(": ")
            if line and not line.startswith(":"):
                fields[name] = value
            elif fields:
                yield fields["event"], json.loads(fields["data"])
                fields = {}


async def test_a_stream_that_is_cut_shows_its_reader_no_text_twice(platform: Platform):
    script = iter([Say(text=HALF, pace_s=PACE_S, cut=True), Say(text=WHOLE, pace_s=PACE_S)])
    reader = Reader()
    async with ChatServer(lambda _: next(script)) as chat:
        await platform.start("router", "tool_registry", "gateway", gateway=GatewaySettings(http_port=0))
        await platform.submit("j1", model="chat/m")
        await platform.wait_until("j1", lambda job: job.routing.route is not None, "the job is routed")

        async for event, data in listen(platform, "j1"):
            reader.take(event, data)
            if event == "job.routed":
                # Only now: the reader hears all of it.
                await platform.start("executor", executor=chatting(chat))

    assert (await platform.wait_for("j1")).answer == WHOLE
    assert reader.text == WHOLE
    first = reader.most[1, 1]
    assert first and HALF.startswith(first)
    [failed] = reader.failed
    assert (failed["error"]["code"], failed["retracted_chars"]) == ("stream_cut", len(first))


async def test_deltas_of_a_failed_call_are_not_passed_on(platform: Platform):
    script = iter([Say(text=HALF, pace_s=PACE_S, cut=True), Say(text=WHOLE, pace_s=PACE_S)])
    reader = Reader()
    async with ChatServer(lambda _: next(script)) as chat:
        await platform.start("router", "tool_registry", "gateway", gateway=GatewaySettings(http_port=0))
        await platform.submit("j1", model="chat/m")
        await platform.wait_until("j1", lambda job: job.routing.route is not None, "the job is routed")

        async for event, data in listen(platform, "j1"):
            reader.take(event, data)
            if event == "job.routed":
                await platform.start("executor", executor=chatting(chat))
            elif event == "model.failed":
                # The network has kept them back until now.
                for text in ("late ", "later "):
                    late = Delta(tenant="default", job_id="j1", step=1, attempt=1, text=text)
                    await platform.bus.send(late)

    assert "late" not in reader.text
    assert (1, 1) not in reader.shown
