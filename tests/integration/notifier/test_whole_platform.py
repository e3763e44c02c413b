"""What the services themselves tell of arrives at receivers: a job's end, a budget's alert, a changed tool."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import httpx2
import mcp_types as types
import orjson
import pytest
import pytest_asyncio
from mcp.server.lowlevel import Server
from standardwebhooks import Webhook as Verifier

from wayline.chassis import Periodic
from wayline.contracts.agents import Agent, AgentConfig, PutAgent
from wayline.contracts.mcp_servers import PutServer, ServerView
from wayline.contracts.models import ModelCard, Prices, PutModel, Rates
from wayline.contracts.server_config import ServerConfig
from wayline.contracts.tools import ListTools, ToolList
from wayline.executor.settings import Settings as ExecutorSettings
from wayline.notifier.settings import Settings
from wayline.router.settings import Settings as RouterSettings
from wayline.simulator.chat_server import ChatServer, Say
from wayline.simulator.website import Website
from wayline.testkit import Platform, until
from wayline.testkit.mcp_servers import serving
from wayline.tool_registry.settings import Settings as RegistrySettings

from .conftest import QUICK, Clock, Hooks

pytestmark = pytest.mark.asyncio(loop_scope="module")

TENANT = "default"


class Bank:
    """A server whose tool a test changes."""

    def __init__(self) -> None:
        self.schema: dict[str, Any] = {"type": "object"}
        self.server: Server[Any] = Server("bank", on_list_tools=self._list)

    async def _list(self, *_: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool(name="pay", description="pay", input_schema=self.schema)])


@dataclass
class Whole:
    """All services, which the tests of this file share: one tenant, that each of them gives a receiver of its own."""

    hooks: Hooks
    http: httpx2.AsyncClient

    async def run(self, **options: Any) -> str:
        """Submit a job over HTTP and wait until it has completed."""
        job = {"agent": "helper", "input": "go", "options": {"model": "chat/scripted", **options}}
        answer = await self.http.post("/v1/jobs", params={"wait": 30}, json=job)
        assert answer.json()["status"] == "completed", answer.text
        return answer.json()["job_id"]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def whole(module_platform: Platform) -> AsyncIterator[Whole]:
    platform = module_platform
    async with ChatServer(lambda _: Say(text="forty-two")) as chat, Website() as website:
        await platform.start(
            *("notifier", "router", "executor", "tool_registry", "gateway"),
            notifier=Settings.model_validate({**QUICK, "upkeep_every_s": 0.1}),
            router=RouterSettings(chat_base_url=chat.url, budgets_every_s=0.1),
            executor=ExecutorSettings(chat_base_url=chat.url),
            tool_registry=RegistrySettings(server_allowed_hosts=("127.0.0.1:*",), probe_every_s=0.1),
        )
        prices = Prices(rates=Rates(input=Decimal("0.1"), output=Decimal("0.2")), source="a test")
        card = ModelCard(provider="chat", model="scripted", tier="standard", prices=prices)
        await platform.bus.ask(PutModel(tenant=TENANT, card=card), ModelCard)
        await platform.bus.ask(PutAgent(tenant=TENANT, name="helper", config=AgentConfig(tools=())), Agent)
        yield Whole(Hooks(platform, website, Clock()), await platform.http())


async def test_a_submitted_jobs_own_webhook_is_told_of_its_end(whole: Whole):
    receiver = whole.hooks.receiver()

    # Nobody has a webhook: this job is the first to name one.
    job_id = await whole.run(webhook={"url": receiver.url, "content": True})

    [request] = await receiver.until_sent(1)
    body = orjson.loads(request.body)
    assert (body["type"], body["data"]["job_id"], body["data"]["answer"]) == ("job.completed", job_id, "forty-two")
    # Its secret is shown when it is asked for: what is sent again is signed with it.
    secret = (await whole.http.post("/v1/webhooks/jobs/rotate")).json()["secret"]
    delivery_id = request.headers["webhook-id"]
    again = await whole.http.post(f"/v1/webhooks/jobs/deliveries/{delivery_id}/redeliver")
    assert again.is_success, again.text
    [_, signed] = await receiver.until_sent(2)
    assert Verifier(secret).verify(signed.body, dict(signed.headers)) == body
    assert signed.headers["webhook-id"] == delivery_id


async def test_a_budget_that_the_router_finds_nearly_used_up_is_told(whole: Whole):
    receiver = whole.hooks.receiver()
    await whole.hooks.put(TENANT, receiver, "finance", events=("budget.alert",))
    budget = {"limit_usd": "0.000001", "hard": False, "window": "day", "alerts": ["0.8"]}
    saved = await whole.http.put("/v1/budgets/small", json=budget)
    assert saved.is_success, saved.text

    await whole.run()

    [request] = await receiver.until_sent(1)
    told = orjson.loads(request.body)["data"]
    assert (told["budget"], told["threshold"], Decimal(told["limit_usd"])) == ("small", "0.8", Decimal("0.000001"))
    assert Decimal(told["used_usd"]) > Decimal("0.000001")
    assert datetime.fromisoformat(told["window_starts_at"]) <= datetime.now(UTC)


async def test_a_tool_that_the_registry_finds_changed_is_told(whole: Whole):
    receiver, bank, bus = whole.hooks.receiver(), Bank(), whole.hooks.platform.bus
    await whole.hooks.put(TENANT, receiver, "security", events=("tool.changed",))
    async with serving(bank.server) as url:
        config = ServerConfig(url=url, effects={"pay": "read"}, untrusted=False)
        await bus.ask(PutServer(tenant=TENANT, name="bank", config=config), ServerView)

        async def listed() -> bool:
            return (await bus.ask(ListTools(tenant=TENANT, patterns=("bank__*",)), ToolList)).tools != ()

        async def withheld() -> bool:
            return not await listed()

        await until(listed, why="the bank's tool is listed")
        bank.schema = {"type": "object", "properties": {"account": {"type": "string"}}}

        await until(withheld, why="the changed tool waits for approval")
        # The registry looks every few seconds whom it has to tell.
        for part in whole.hooks.platform.services["tool_registry"].parts:
            if isinstance(part, Periodic):
                part.now()
        [request] = await receiver.until_sent(1)
        told = orjson.loads(request.body)["data"]
        assert (told["server"], told["tool"], len(told["definition_sha256"])) == ("bank", "pay", 64)
