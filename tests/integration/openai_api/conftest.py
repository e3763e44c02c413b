"""The whole platform in this process, with a scripted model, and the official OpenAI client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from openai import AsyncOpenAI

from wayline.contracts.agents import Agent, AgentConfig, PutAgent
from wayline.contracts.models import ModelCard, Prices, PutModel, Rates
from wayline.executor.settings import Settings as ExecutorSettings
from wayline.gateway.settings import Settings as GatewaySettings
from wayline.retrieval.settings import Settings as RetrievalSettings
from wayline.router.settings import Settings as RouterSettings
from wayline.simulator import Say as ProviderSay
from wayline.simulator import Simulator, turns
from wayline.simulator.chat_server import ChatServer, Say
from wayline.testkit import Platform

MODEL = "chat/scripted"
AGENT = "helper"
EMBEDS = "text-embedding-3-small"


@dataclass
class Doors:
    """The platform behind its gateway; `say` is what the model answers next."""

    platform: Platform
    chat: ChatServer
    http: httpx2.AsyncClient
    say: list[Callable[[dict[str, Any]], Say]] = field(default_factory=lambda: [lambda _: Say(text="Yes.")])

    @property
    def base_url(self) -> str:
        return f"{str(self.http.base_url).rstrip('/')}/openai/v1"

    def client(self, **more: Any) -> AsyncOpenAI:
        return AsyncOpenAI(base_url=self.base_url, api_key="local", **{"max_retries": 0, **more})

    def answers(self, *texts: str | Say) -> None:
        """Have the model say these, one a call, the last one again and again."""
        says = [Say(text=one) if isinstance(one, str) else one for one in texts]
        self.say[0] = lambda _: says.pop(0) if len(says) > 1 else says[0]

    async def save(self, name: str, **config: Any) -> None:
        """Save an agent that calls the scripted model."""
        fields = {"model": MODEL, "tools": (), **config}
        await self.platform.bus.ask(PutAgent(tenant="default", name=name, config=AgentConfig(**fields)), Agent)

    def messages(self, call: int = -1) -> list[dict[str, Any]]:
        """Return what the model was sent in a call."""
        return self.chat.calls[call][1]["messages"]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def opened(module_platform: Platform) -> AsyncIterator[Doors]:
    says: list[Callable[[dict[str, Any]], Say]] = [lambda _: Say(text="Yes.")]

    def script(body: dict[str, Any]) -> Say:
        return says[0](body)

    async with ChatServer(script) as chat, Simulator(turns(ProviderSay(text=""))) as embedder:
        await module_platform.start(
            *("router", "executor", "tool_registry", "retrieval", "gateway"),
            router=RouterSettings(chat_base_url=chat.url),
            executor=ExecutorSettings(chat_base_url=chat.url),
            retrieval=RetrievalSettings(
                embedding_model=EMBEDS, embedding_base_url=embedder.openai_url, embedding_api_key="simulated"
            ),
            gateway=GatewaySettings(http_port=0, openai_abandoned_after_s=1.0),
        )
        rates = Rates(input=Decimal("0.1"), output=Decimal("0.2"))
        prices = Prices(rates=rates, source="a test")
        card = ModelCard(
            provider="chat",
            model="scripted",
            tier="standard",
            prices=prices,
            images=True,
            temperature=True,
            tools="native",
        )
        await module_platform.bus.ask(PutModel(tenant="default", card=card), ModelCard)
        doors = Doors(module_platform, chat, await module_platform.http(timeout_s=30), says)
        await doors.save(AGENT)
        yield doors


@pytest.fixture
def doors(opened: Doors) -> Doors:
    """The open doors, with a model that says yes."""
    opened.answers("Yes.")
    opened.chat.calls.clear()
    return opened


def held() -> tuple[asyncio.Event, Say]:
    """Return a reply that stops after its first word, and what lets it go on."""
    release = asyncio.Event()
    return release, Say(text="One two three.", hold=release)
