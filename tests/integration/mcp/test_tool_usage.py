"""What agents call proposes what to load always, over HTTP and on the command line."""

from __future__ import annotations

from typing import Any

import httpx2

from wayline.simulator.chat_server import ChatServer, Say
from wayline.standalone.terminal.list_views import tool_usage_table
from wayline.testkit import Platform, until

from ..jobs.conftest import chatting
from .conftest import open_door

MODEL = "chat/gemini-3.5-flash-lite"
JOBS = 10


async def test_a_tool_found_by_most_jobs_is_proposed_to_be_loaded(platform: Platform):
    def script(body: dict[str, Any]) -> Say:
        ran = [message for message in body["messages"] if message["role"] == "tool"]
        if len(ran) == 2:
            return Say(text="noon")
        time = {"timezone": "Europe/Zurich"}
        return Say(
            tools=(
                ("use_tool", {"name": "get_current_time", "arguments": time})
                if ran
                else ("tool_search", {"query": "time"}),
            )
        )

    async with ChatServer(script) as chat:
        door = await open_door(platform, "executor", "tracing", executor=chatting(chat))
        await platform.put_agent("clock", model=MODEL, tools={"deferred": ["*"]})
        for number in range(JOBS):
            await platform.submit(f"j{number}", agent="clock")
        for number in range(JOBS):
            await platform.wait_for(f"j{number}")
        found: dict[str, Any] = {}

        async def is_listed() -> bool:
            async with httpx2.AsyncClient() as http:
                answer = await http.get(door.url.replace("/mcp", "/v1/tools/usage"), params={"agent": "clock"})
            found.update(answer.json())
            return bool(found["agents"]) and found["agents"][0]["jobs"] == JOBS

        await until(is_listed, why="tracing has read the jobs")

    [clock] = found["agents"]
    assert (clock["tools"], clock["always"]) == ([{"tool": "get_current_time", "jobs": JOBS}], ["get_current_time"])
    assert clock["tools_proposed"] == {"always": ["get_current_time"], "deferred": ["*"]}
    assert tool_usage_table(found) is not None
