"""The floor: the least engine that makes the same durable writes and the same model calls, in bare nats-py.

    python tests/bench/speed/floor.py NATS_URL MODEL_URL SLOTS

A job is one message in a work queue (write 1); after each model call and each tool call its outcome is appended to the
job's log, expecting the sequence before it (writes 2-6), then its end (write 7). No schemas, no spans, no budget, no
cancel, no tool service, one tenant; a crash loses nothing that was appended.
"""

from __future__ import annotations

import asyncio
import sys
from datetime import UTC, datetime
from typing import Any

import aiohttp
import nats
import orjson
import uvloop
from nats.aio.client import Client as NATS
from nats.aio.msg import Msg
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, RetentionPolicy, StreamConfig

SUBMIT = "floor.submit"
NEXT = "$JS.API.CONSUMER.MSG.NEXT.FLOOR_SUBMIT.floor"
TOOL: dict[str, Any] = {
    "name": "get_current_time",
    "description": "Tell the current date and time.",
    "parameters": {"type": "object", "properties": {"timezone": {"type": "string", "default": "UTC"}}},
}
TOOLS = [{"type": "function", "function": TOOL}]
JOB_WITHIN_S = 120
"""It has no heartbeat: a job that needed longer would be run a second time beside the first."""


async def declare(js: JetStreamContext) -> None:
    await js.add_stream(StreamConfig(name="FLOOR_SUBMIT", subjects=[SUBMIT], retention=RetentionPolicy.WORK_QUEUE))
    await js.add_stream(StreamConfig(name="FLOOR_EVENTS", subjects=["floor.events.*"]))
    config = ConsumerConfig(
        durable_name="floor", ack_policy=AckPolicy.EXPLICIT, ack_wait=JOB_WITHIN_S, max_ack_pending=20_000
    )
    await js.add_consumer("FLOOR_SUBMIT", config)


class Floor:
    def __init__(self, nc: NATS, session: aiohttp.ClientSession, model_url: str) -> None:
        self._nc = nc
        self._js = nc.jetstream()
        self._session = session
        self._url = f"{model_url}/chat/completions"
        self._inbox = nc.new_inbox()
        self._running: set[asyncio.Task[None]] = set()

    async def run(self, slots: int) -> None:
        await self._nc.subscribe(self._inbox, cb=self._on_message)
        await self._ask(slots)
        await asyncio.Event().wait()

    async def _ask(self, batch: int) -> None:
        await self._nc.publish(NEXT, orjson.dumps({"batch": batch}), reply=self._inbox)

    async def _on_message(self, message: Msg) -> None:
        if message.headers and "Status" in message.headers:
            return
        task = asyncio.create_task(self._job(message))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _job(self, message: Msg) -> None:
        asked = orjson.loads(message.data)
        subject, sequence = f"floor.events.{asked['job_id']}", 0
        messages: list[dict[str, Any]] = [
            {"role": "system", "content": "You answer in one sentence."},
            {"role": "user", "content": asked["input"]},
        ]
        while True:
            answer = await self._model(asked["model"], messages)
            messages.append(answer)
            sequence = await self._append(subject, {"model": answer}, sequence)
            if "tool_calls" not in answer:
                break
            for call in answer["tool_calls"]:
                result = {"role": "tool", "tool_call_id": call["id"], "content": datetime.now(UTC).isoformat()}
                messages.append(result)
                sequence = await self._append(subject, {"tool": result}, sequence)
        await self._append(subject, {"answer": answer["content"]}, sequence)
        await self._nc.publish((message.headers or {})["Wayline-Reply-To"], orjson.dumps({"answer": answer["content"]}))
        await message.ack()
        await self._ask(1)

    async def _append(self, subject: str, value: dict[str, Any], after: int) -> int:
        headers = {"Nats-Expected-Last-Subject-Sequence": str(after)}
        # A disk that stands still for some seconds must not end a job: nobody would take its slot again.
        return (await self._js.publish(subject, orjson.dumps(value), headers=headers, timeout=JOB_WITHIN_S)).seq

    async def _model(self, model: str, messages: list[dict[str, Any]]) -> dict[str, Any]:
        text, calls = "", {}
        body = {"model": model, "messages": messages, "tools": TOOLS, "stream": True}
        async with self._session.post(self._url, data=orjson.dumps(body)) as response:
            async for line in response.content:
                if not line.startswith(b"data: {"):
                    continue
                for choice in orjson.loads(line[6:])["choices"]:
                    text += choice["delta"].get("content") or ""
                    for call in choice["delta"].get("tool_calls") or ():
                        calls[call["index"]] = call
        if calls:
            return {"role": "assistant", "content": None, "tool_calls": list(calls.values())}
        return {"role": "assistant", "content": text}


async def main(nats_url: str, model_url: str, slots: str) -> None:
    nc = await nats.connect(nats_url)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=2_048)) as session:
        await Floor(nc, session, model_url).run(int(slots))


if __name__ == "__main__":
    uvloop.run(main(*sys.argv[1:4]))
