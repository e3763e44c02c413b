"""What a search of the web means for its job: its cost, and that strangers' words were read."""

from __future__ import annotations

from decimal import Decimal

from wayline.contracts import events as e
from wayline.contracts.models import ModelCard, Prices, PutModel, Rates
from wayline.router.settings import Settings as RouterSettings
from wayline.simulator.chat_server import ChatServer, Say, turns
from wayline.simulator.search_engine import KEY, Result, SearchEngine
from wayline.testkit import Platform
from wayline.testkit.effects_server import EffectsServer

from .conftest import chatting, until_listed, with_tools

PAY = "effects__pay_once"
CARD = ModelCard(
    provider="chat",
    model="m",
    tier="standard",
    prices=Prices(rates=Rates(input=Decimal(1), output=Decimal(1)), source="a test"),
)
PRICE, PAY_PRICE = Decimal("0.005"), Decimal("0.01")


async def test_a_paid_search_is_in_the_jobs_cost_and_taints_it(platform: Platform, effects: EffectsServer):
    plan = turns(
        Say(tools=(("web_search", {"query": "tides"}),)), Say(tools=((PAY, {"amount": 1}),)), Say(text="all done")
    )
    played = SearchEngine(lambda asked: [Result("Tides", "https://sea.example/", "They rise.")])
    await effects.start()
    async with ChatServer(plan) as chat, played.website() as site:
        tools = with_tools(
            effects.settings(),
            web_search_provider="brave",
            web_search_url=site.url("/res/v1"),
            web_search_key=KEY,
            web_search_cost_usd=PRICE,
        )
        router = RouterSettings(chat_base_url=chat.url)
        await platform.start(
            "router", "executor", "tool_registry", router=router, executor=chatting(chat), tool_registry=tools
        )
        await until_listed(platform, PAY)
        await platform.bus.ask(PutModel(tenant="default", card=CARD), ModelCard)
        await platform.put_agent("searcher", tools=("*", "web_search"), ask="never")
        await platform.submit("j1", agent="searcher", model="chat/m")
        [asked] = (await platform.wait_until_parked("j1")).tools.pending
        assert (asked.tool, asked.why) == (PAY, "tainted")
        await platform.decide("j1", asked.approval_id)
        await platform.wait_for("j1")
        charged = [one.cost_usd for one in await platform.events_of("j1", e.ToolCompleted)]
        models = [one.cost_usd or Decimal(0) for one in await platform.events_of("j1", e.ModelCompleted)]
        ended = await platform.job("j1")

    assert charged == [PRICE, PAY_PRICE]
    assert ended.money.cost_usd == sum(models) + PRICE + PAY_PRICE
    assert len(played.asked) == 1
