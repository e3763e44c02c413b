"""What one job of a session leaves warm counts when the next one is routed, and is in its log."""

from __future__ import annotations

from decimal import Decimal

from wayline.contracts.agents import Agent, AgentConfig, PutAgent
from wayline.contracts.events import JobRouted, ModelRequested, Warm
from wayline.contracts.models import CacheRules, ModelCard, Prices, PutModel, Rates
from wayline.router.settings import Settings as RouterSettings
from wayline.routing import choose_again, current_policy
from wayline.simulator.chat_server import ChatServer, Say
from wayline.testkit import Platform

from .conftest import chatting

RATES = Rates(input=Decimal(10), output=Decimal(10), cache_read=Decimal("0.1"))
KEPT = CacheRules(kind="automatic", min_tokens=100, ttl_s=3_600)


async def routed(platform: Platform, job_id: str) -> JobRouted:
    return next(event for event in await platform.events(job_id) if isinstance(event, JobRouted))


async def test_a_sessions_second_job_is_predicted_with_the_warm_cache(platform: Platform):
    async with ChatServer(lambda _: Say(text="Yes.")) as chat:
        router = RouterSettings(chat_base_url=chat.url)
        await platform.start("router", "executor", "tool_registry", router=router, executor=chatting(chat))
        card = ModelCard(provider="chat", model="m", tier="standard", prices=Prices(rates=RATES), cache=KEPT)
        await platform.bus.ask(PutModel(tenant="default", card=card), ModelCard)
        agent = AgentConfig(instructions="Say what you know. " * 100, tools=())
        await platform.bus.ask(PutAgent(tenant="default", name="knower", config=agent), Agent)
        job = {"agent": "knower", "input": "Is it so?", "options": {"task_type": "drafting"}}
        for number, session in enumerate(("s1", "s1", "s2")):
            await platform.publish({**job, "job_id": f"j{number}", "session_id": session})
            await platform.wait_for(f"j{number}")
            await platform.wait_until_empty("SUBMIT", "RUN")

    first, second, other = [await routed(platform, job_id) for job_id in ("j0", "j1", "j2")]
    asked = next(event for event in await platform.events("j0") if isinstance(event, ModelRequested))
    prefix = sum(part.tokens for part in asked.prefix if part.part != "messages")
    assert (first.warm, second.warm, other.warm) == (None, Warm(model="chat/m", prefix_tokens=prefix), None)
    cold, warm = first.route.estimated_cost_usd, second.route.estimated_cost_usd
    assert cold is not None and warm is not None
    assert cold - warm >= prefix * (RATES.input - Decimal("0.1")) / 1_000_000
    submitted = (await platform.job("j1")).life.submitted
    assert submitted is not None
    assert choose_again(submitted, second, policy=current_policy()).route == second.route
