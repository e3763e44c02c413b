"""The whole platform in this process, its console on a socket, and a browser's HTTP client."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import httpx2
import pytest
import pytest_asyncio
import uvicorn

from wayline.console.app import create_app
from wayline.console.settings import Settings
from wayline.contracts.agents import Agent, AgentConfig, PutAgent
from wayline.contracts.models import ModelCard, Prices, PutModel, Rates
from wayline.executor.settings import Settings as ExecutorSettings
from wayline.gateway.settings import Settings as GatewaySettings
from wayline.router.settings import Settings as RouterSettings
from wayline.simulator.chat_server import ChatServer, Say
from wayline.testkit import Platform
from wayline.testkit.waiting import until

AGENT = "helper"
SAME_ORIGIN = {"sec-fetch-site": "same-origin"}


@asynccontextmanager
async def console_at(gateway_url: str, **more: Any) -> AsyncIterator[str]:
    """Serve a console, and yield its address."""
    server = uvicorn.Server(
        uvicorn.Config(create_app(Settings(gateway_url=gateway_url, **more)), port=0, log_level="error", lifespan="on")
    )
    running = asyncio.create_task(server.serve())
    await until(lambda: server.started, why="the console listens")
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        await running


@dataclass
class Browser:
    """A browser's cookies and forms, without its scripts."""

    http: httpx2.AsyncClient
    page: str = ""

    async def open(self, path: str, **headers: str) -> httpx2.Response:
        """Open a page and keep its HTML."""
        answer = await self.http.get(path, headers=headers)
        self.page = answer.text
        return answer

    async def send(self, path: str, *, token: str | None = None, **fields: str | list[str]) -> httpx2.Response:
        """Send a form of the page that is open."""
        found = re.search(r'name="token" value="([^"]+)"', self.page)
        given = token if token is not None else (found[1] if found else "")
        answer = await self.http.post(path, data={"token": given, **fields}, headers=SAME_ORIGIN)
        self.page = answer.text
        return answer


@dataclass
class Console:
    """The platform, its console, and what the model says next."""

    platform: Platform
    api: httpx2.AsyncClient
    url: str
    say: list[Callable[[dict[str, Any]], Say]] = field(default_factory=list)

    def answers(self, *texts: str | Say) -> None:
        """Have the model say these, one a call, the last one again and again."""
        says = [Say(text=one) if isinstance(one, str) else one for one in texts]
        self.say[0] = lambda _: says.pop(0) if len(says) > 1 else says[0]

    async def save(self, name: str, **config: Any) -> None:
        """Save an agent that calls the scripted model."""
        fields = {"model": "chat/scripted", "tools": (), **config}
        await self.platform.bus.ask(PutAgent(tenant="default", name=name, config=AgentConfig(**fields)), Agent)

    async def run(self, text: str = "hello", *, agent: str = AGENT, **more: Any) -> dict[str, Any]:
        """Run a job to its end."""
        answer = await self.api.post("/v1/jobs", params={"wait": 20}, json={"agent": agent, "input": text, **more})
        assert answer.status_code == 200, answer.text
        return answer.json()

    @asynccontextmanager
    async def browser(self, url: str | None = None) -> AsyncIterator[Browser]:
        """Yield a browser that has opened nothing yet."""
        async with httpx2.AsyncClient(base_url=url or self.url, timeout=30, trust_env=False) as http:
            yield Browser(http)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def opened(module_platform: Platform, request: pytest.FixtureRequest) -> AsyncIterator[Console]:
    """The platform; a test file names in ALSO what it needs beyond what runs jobs, and in SETTINGS how."""
    says: list[Callable[[dict[str, Any]], Say]] = [lambda _: Say(text="Yes.")]

    def script(body: dict[str, Any]) -> Say:
        return says[0](body)

    async with ChatServer(script) as chat:
        await module_platform.start(
            *("router", "executor", "tool_registry", "tracing", "gateway"),
            *getattr(request.module, "ALSO", ()),
            router=RouterSettings(chat_base_url=chat.url),
            executor=ExecutorSettings(chat_base_url=chat.url),
            gateway=GatewaySettings(http_port=0),
            **getattr(request.module, "SETTINGS", {}),
        )
        api = await module_platform.http(timeout_s=30)
        async with console_at(str(api.base_url)) as url:
            rates = Rates(input=Decimal("0.1"), output=Decimal("0.2"))
            prices = Prices(rates=rates, source="a test")
            card = ModelCard(provider="chat", model="scripted", tier="standard", prices=prices, tools="native")
            await module_platform.bus.ask(PutModel(tenant="default", card=card), ModelCard)
            console = Console(module_platform, api, url, says)
            await console.save(AGENT)
            yield console


@pytest.fixture
def console(opened: Console) -> Console:
    """The console, with a model that says yes."""
    opened.answers("Yes.")
    return opened
