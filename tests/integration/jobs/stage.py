"""One platform for all tests of a file whose tools have effects: each test is a tenant of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wayline.router.settings import Settings as RouterSettings
from wayline.simulator.chat_server import ChatServer, Say, Script
from wayline.testkit import Platform
from wayline.testkit.effects_server import EffectsServer

from .conftest import chatting, until_listed, with_tools
from .ended_jobs import differences


@dataclass
class Stage:
    """A platform whose tools have effects, and a model that says what the test gives it."""

    platform: Platform
    effects: EffectsServer
    chat: ChatServer

    async def play(self, script: Script) -> Platform:
        """Have the model follow a script, for a tenant of the test's own; nothing has been asked or done before."""
        self.chat.script = script
        self.chat.calls.clear()
        self.effects.forget()
        return await self.platform.new_tenant()


@asynccontextmanager
async def open_stage(
    platform: Platform,
    directory: Path,
    *servers: dict[str, Any],
    services: tuple[str, ...] = (),
    asking: bool = False,
    **executor: Any,
) -> AsyncIterator[Stage]:
    """Start services, with MCP servers beside the one of effects; at the end every ended job is replayed."""
    effects = EffectsServer(directory / "effects.txt", asking=asking)
    await effects.start()
    try:
        async with ChatServer(lambda _: Say()) as chat:
            await platform.start(
                *("router", "tool_registry", "executor", *services),
                router=RouterSettings(chat_base_url=chat.url),
                tool_registry=with_tools(effects.settings(), *servers),
                executor=chatting(chat, **executor),
            )
            await until_listed(platform, "effects__pay_once")
            yield Stage(platform, effects, chat)
            assert await differences(platform.bus) == []
    finally:
        effects.kill()
