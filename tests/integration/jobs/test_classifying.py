"""A job whose type is asked for, through every service: planned, paid, and the same wherever one looks."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import httpx2

from wayline.contracts import ids
from wayline.contracts.agents import Agent, AgentConfig, PutAgent, Routing
from wayline.contracts.budgets import Budget, BudgetConfig, PutBudget
from wayline.contracts.models import ModelCard, Prices, PutModel, Rates, Tier
from wayline.gateway.settings import Settings as GatewaySettings
from wayline.router.settings import Settings as RouterSettings
from wayline.simulator.chat_server import ChatServer, Say
from wayline.testkit import Platform, until

from .conftest import chatting

TIERS: dict[str, Tier] = {"small": "flash", "middle": "standard", "large": "premium"}
AGENT = AgentConfig(
    routing=Routing(fast="chat/small", primary="chat/middle", escalation="chat/large"), tools=(), classify=True
)
TEXT = "They want more, and we have less."


def says(body: dict[str, Any]) -> Say:
    asked = "Say which type of task" in body["messages"][0]["content"]
    return Say("negotiation" if asked else "Stand firm.")


async def begin(platform: Platform, chat: ChatServer) -> httpx2.AsyncClient:
    services = ("router", "tool_registry", "tracing", "gateway", "executor")
    router, gateway = RouterSettings(chat_base_url=chat.url), GatewaySettings(http_port=0)
    await platform.start(*services, router=router, executor=chatting(chat), gateway=gateway)
    for n, (model, tier) in enumerate(TIERS.items(), 1):
        prices = Prices(rates=Rates(input=Decimal(n), output=Decimal(5 * n)))
        card = ModelCard(provider="chat", model=model, tier=tier, prices=prices)
        await platform.bus.ask(PutModel(tenant="default", card=card), ModelCard)
    await platform.bus.ask(PutAgent(tenant="default", name="sorting", config=AGENT), Agent)
    budget = BudgetConfig(limit_usd=Decimal(1), window="total")
    await platform.bus.ask(PutBudget(tenant="default", name="cap", config=budget), Budget)
    return httpx2.AsyncClient(base_url=f"http://127.0.0.1:{platform.http_port}", timeout=30)


async def test_a_dry_run_names_the_classifier_without_asking_it(platform: Platform):
    async with ChatServer(says) as chat, await begin(platform, chat) as client:
        body = {"agent": "sorting", "input": TEXT, "options": {"dry_run": True}}
        route = (await client.post("/v1/jobs", json=body)).json()["route"]
        body["options"]["task_type"] = "negotiation"
        named = (await client.post("/v1/jobs", json=body)).json()["route"]

    assert (route["classifier"], route["task_type"]) == ("chat/small", None)
    assert (named["classifier"], named["model"]) == (None, "large")
    assert Decimal(route["estimated_cost_range_usd"][1]) >= Decimal(named["estimated_cost_range_usd"][1])
    assert chat.calls == []


async def test_what_asking_cost_is_the_same_wherever_one_looks(platform: Platform):
    async with ChatServer(says) as chat, await begin(platform, chat) as client:
        await platform.submit("j1", TEXT, agent="sorting")
        done = await platform.wait_for("j1")

        async def told() -> bool:
            rows = (await client.get("/v1/costs", params={"group_by": "job"})).json()["rows"]
            async with platform.superuser() as conn:
                left = await conn.fetchval("SELECT count(*) FROM router.reservations WHERE state <> 'settled'")
            return not left and [Decimal(row["cost_usd"]) for row in rows] == [done.cost_usd]

        await until(told, why="tracing and the budgets know the job")
        kinds = (await client.get("/v1/costs", params={"group_by": "kind"})).json()["rows"]
        trace = (await client.get("/v1/jobs/j1/trace")).json()
        async with platform.superuser() as conn:
            settled = await conn.fetchval("SELECT settled_usd FROM router.reservations WHERE job_id = 'j1'")

    assert done.route is not None and (done.route.name, done.route.task_type) == ("chat/large", "negotiation")
    assert done.costs is not None and done.costs.aux["classification"]
    asked, answered = done.costs.aux["classification"], done.costs.model["chat/large"]
    assert asked + answered == done.cost_usd == settled
    assert {row["group"]["kind"]: Decimal(row["cost_usd"]) for row in kinds} == {"aux": asked, "model": answered}
    [aside] = [span for span in trace["root"]["children"] if span["name"] == "classification small"]
    assert aside["span_id"] == ids.aux_span("default", "j1", "default/j1/0/a1")
    assert Decimal(aside["cost_usd"]) == asked
    assert Decimal(trace["totals"]["cost_usd"]) == done.cost_usd
