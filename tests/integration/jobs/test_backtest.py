"""Jobs that really ran, decided again over HTTP."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from wayline.client import Address, Client
from wayline.contracts.agents import Agent, AgentConfig, PutAgent, Routing
from wayline.contracts.models import ModelCard, Prices, Rates, Tier
from wayline.gateway.settings import Settings as GatewaySettings
from wayline.router.routes import routes
from wayline.routing import Decision, RoutingInput, choose_route, current_policy
from wayline.simulator.chat_server import ChatServer, Say
from wayline.standalone.recorded.backtest import backtest, load_policy
from wayline.testkit import until

from .conftest import chatting

TASKS = {
    "greeting": ("Hello, are you there?", None),
    "mood": ("The kettle is late again.", "sentiment"),
    "letter": ("Answer the supplier, who is late again, and ask for a plan.", "drafting"),
    "deal": ("They want more, and we have less.", "negotiation"),
    "proof": ("Prove by induction that the sum of the first n odd numbers is n squared, and verify it.", None),
}


CLASSIFIED = {"sorted": "They want more, and we have less.", "unsorted": "Who can say what this is?"}
"""Jobs whose type a model is asked for."""


def says(body: dict[str, Any]) -> Say:
    if "Say which type of task" not in body["messages"][0]["content"]:
        return Say("Yes.")
    return Say("negotiation" if "want more" in body["messages"][1]["content"] else "none")


def card(name: str, tier: Tier, usd: str) -> ModelCard:
    rates = Rates(input=Decimal(usd), output=Decimal(usd) * 5)
    return ModelCard(provider="chat", model=name, tier=tier, prices=Prices(rates=rates))


CARDS = (
    card("small", "flash", "0.1"),
    card("middle", "standard", "2"),
    card("large", "premium", "4"),
    card("thinker", "reasoning", "8"),
)


@pytest.fixture
def catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    def choose(asked: RoutingInput, **facts: Any) -> Decision:
        return choose_route(asked, **{**facts, "cards": CARDS})

    monkeypatch.setattr(routes, "choose_route", choose)


async def test_the_current_policy_gives_every_recorded_job_its_route_again(platform, catalogue):
    async with ChatServer(says) as chat:
        await platform.start(
            "router",
            "tool_registry",
            "retrieval",
            "tracing",
            "gateway",
            "executor",
            gateway=GatewaySettings(http_port=0),
            executor=chatting(chat),
        )
        agent = AgentConfig(routing=Routing(reasoning="reasoning"), tools=(), max_output_tokens=1_000)
        await platform.bus.ask(PutAgent(tenant="default", name="thinking", config=agent), Agent)
        for name, (text, task) in TASKS.items():
            await platform.submit(name, text, agent="thinking", **({"task_type": task} if task else {}))
        sorting = agent.model_copy(update={"classify": True})
        await platform.bus.ask(PutAgent(tenant="default", name="sorting", config=sorting), Agent)
        for name, text in CLASSIFIED.items():
            await platform.submit(name, text, agent="sorting")
        for name in ("pinned", "planned"):
            await platform.submit(
                name, agent="thinking", **{"pinned": {"model": "chat/x"}, "planned": {"dry_run": True}}[name]
            )
        for name in (*TASKS, *CLASSIFIED, "pinned", "planned"):
            await platform.wait_for(name)
        went = {name: (await platform.job(name)).routing.route for name in CLASSIFIED}

        async with Client(Address(f"http://127.0.0.1:{platform.http_port}")) as client:

            async def listed() -> bool:
                jobs = (await client.get("/v1/jobs"))["jobs"]
                return len(jobs) == len(TASKS) + 4 and all(job["status"] == "completed" for job in jobs)

            await until(listed, why="tracing knows all jobs")
            since = datetime.now(UTC) - timedelta(days=1)
            called = len(chat.calls)
            same = await backtest(client, current_policy(), since=since)
            dearer = await backtest(client, load_policy("all-premium"), since=since)
            none = await backtest(client, current_policy(), since=datetime.now(UTC))

    assert (same["jobs"], same["same"], same["changed"]) == (9, 9, [])
    assert {name: route and route.model for name, route in went.items()} == {"sorted": "large", "unsorted": "small"}
    assert same["decided_by"] == {current_policy().label: 9}
    assert {(row["was"], row["now"]) for row in same["tiers"]} == {
        (t, t) for t in ("flash", "standard", "premium", "reasoning")
    }
    assert same["was_usd"] == same["now_usd"]
    assert same["unknown_cost"] == 1, "nobody knows what chat/x costs"
    assert {row["now"] for row in dearer["changed"]} == {"chat/large"}
    assert Decimal(dearer["now_usd"]) > Decimal(dearer["was_usd"])
    assert none["jobs"] == 0
    assert len(chat.calls) == called, "nobody was asked again"
