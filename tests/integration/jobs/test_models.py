"""A tenant's models through the front door: gateway, router, and the command line."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from wayline.contracts.agents import Agent, AgentConfig, PutAgent, Routing
from wayline.gateway.settings import Settings as GatewaySettings
from wayline.llm.endpoints import EndpointSettings
from wayline.router.settings import Settings as RouterSettings
from wayline.simulator.chat_server import ChatServer, Say
from wayline.standalone.doctor.models import examine_models
from wayline.standalone.settings import Settings as StandaloneSettings
from wayline.standalone.setup.installation import Installation
from wayline.testkit import Platform
from wayline.testkit.service_starts import finish_command

from .conftest import chatting

COMMAND_WITHIN_S = 60.0
CARD = {"provider": "chat", "model": "acme/large:8b", "tier": "standard", "context_window": 40_000}


async def test_the_command_line_adds_lists_shows_and_removes_a_model(platform, tmp_path: Path):
    await platform.start("gateway", "router", router=RouterSettings(chat_base_url="http://127.0.0.1:11434/v1"))
    (tmp_path / "card.json").write_text(json.dumps(CARD))

    async def wayline(*words: str, code: int = 0) -> str:
        env = {**os.environ, "WAYLINE_URL": f"http://127.0.0.1:{platform.http_port}"}
        run = await asyncio.to_thread(
            finish_command, "models", *words, cwd=tmp_path, env=env, stdin="", within_s=COMMAND_WITHIN_S
        )
        assert run.returncode == code, run.stderr
        return run.stdout + run.stderr

    added = json.loads(await wayline("add", str(tmp_path / "card.json"), "--json"))
    listed = json.loads(await wayline("list", "--json"))
    shown = await wayline("show", "chat/acme/large:8b")
    table = await wayline("list")
    removed = await wayline("remove", "chat/acme/large:8b")

    assert (added["prices"], added["context_window"]) == (None, 40_000)
    assert listed["own"] == ["chat/acme/large:8b"]
    assert listed["usable"] == ["chat/acme/large:8b", "offline/extractive"]
    assert "price" in shown and "unknown" in shown
    (row,) = [line for line in table.splitlines() if "acme/large" in line]
    assert row.split() == ["chat/acme/large:8b", "standard", "40,000", "unknown", "unknown", "unknown", "own"]
    assert "removed" in removed
    assert "no model 'chat/acme/large:8b'" in await wayline("show", "chat/acme/large:8b", code=1)


async def test_the_doctor_asks_the_running_system_not_its_shell(
    platform: Platform, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for field in EndpointSettings.model_fields.values():
        monkeypatch.delenv(str(field.validation_alias), raising=False)
    async with ChatServer(lambda _: Say(text="never")) as chat:
        router = RouterSettings(chat_base_url=chat.url)
        await platform.start(
            "router",
            "executor",
            "gateway",
            router=router,
            executor=chatting(chat),
            gateway=GatewaySettings(http_port=0),
        )
        wanting = AgentConfig(routing=Routing(primary="openai/gpt-6-sol"))
        await platform.bus.ask(PutAgent(tenant="default", name="wanting", config=wanting), Agent)
        monkeypatch.setenv("WAYLINE_URL", f"http://127.0.0.1:{platform.http_port}")

        lines = [one.text async for one in examine_models(StandaloneSettings(), Installation(tmp_path / "data"))]
        await platform.stop("executor")
        alone = [one.text async for one in examine_models(StandaloneSettings(), Installation(tmp_path / "data"))]

    assert lines[0] == "executors call chat at 127.0.0.1, without a key"
    assert "agent wanting names openai/gpt-6-sol, but executors have no openai" in lines
    assert len(alone) == 1 and alone[0].startswith("the providers that executors can call are unknown")
