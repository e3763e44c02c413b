"""How far a tool is, shown to those who follow its job while it runs; nothing of it is in the log."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson

from wayline.contracts.jobs import Delta
from wayline.contracts.progress import Progress
from wayline.journal import follow, with_progress
from wayline.simulator.chat_server import ChatServer, Say, turns
from wayline.testkit import Platform
from wayline.testkit.mcp_servers import serving
from wayline.tool_registry.settings import Settings as RegistrySettings

from ..tool_registry.test_progress import Bank
from .conftest import chatting, until_listed


async def test_a_follower_is_shown_how_far_a_tool_is(platform: Platform):
    bank = Bank()
    script = turns(Say(tools=(("bank__move", {}),)), Say(text="all moved"))
    async with serving(bank) as url, ChatServer(script) as chat:
        server: dict[str, Any] = {"name": "bank", "url": url, "effects": {"move": "once"}}
        registry = RegistrySettings.model_validate({"servers": [server], "answer_within_s": 0.2})
        await platform.start("router", "executor", "tool_registry", executor=chatting(chat), tool_registry=registry)
        await until_listed(platform, "bank__move")
        await platform.put_agent("banker", tools=("bank__move",))
        plain = asyncio.create_task(deltas_of(platform))
        await platform.submit("j1", agent="banker", model="chat/m")
        running: list[Progress] = []
        async for item in with_progress(follow(platform.bus, "default", "j1", calls=True)):
            if isinstance(item, Progress) and item.phase == "running":
                running.append(item)
                bank.go.set()
        ended = await platform.wait_for("j1")

    assert ended.answer == "all moved"
    assert {one.message for one in running} == {"bank__move: three moved (3 of 10)"}
    assert not [delta for delta in await plain if delta.tool is not None]
    stored = [orjson.dumps(event.model_dump(mode="json")) for event in await platform.events("j1")]
    assert not [event for event in stored if b"three moved" in event]


async def deltas_of(platform: Platform) -> list[Delta]:
    """Return the pieces of text that a follower hears who has not asked for more."""
    return [item async for item in follow(platform.bus, "default", "j1") if isinstance(item, Delta)]
