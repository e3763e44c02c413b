"""A job is not given to a model that executors say is away."""

from __future__ import annotations

import time
from decimal import Decimal

from wayline.chassis.providers import Condition, ProviderState, subject
from wayline.contracts.events import Away, JobRouted
from wayline.contracts.jobs import JobOptions, PlanJob, Planned, SubmitJob
from wayline.contracts.models import ModelCard, Prices, PutModel, Rates
from wayline.router.settings import Settings as RouterSettings
from wayline.routing import choose_again, current_policy
from wayline.simulator.chat_server import ChatServer, Say
from wayline.testkit import Platform, until

from .conftest import chatting

PRICES = Prices(rates=Rates(input=Decimal(1), output=Decimal(2)))


async def test_a_job_goes_to_its_tiers_next_model_while_one_fails(platform: Platform):
    async with ChatServer(lambda _: Say(text="Yes.")) as chat:
        router = RouterSettings(chat_base_url=chat.url)
        await platform.start("router", "executor", "tool_registry", router=router, executor=chatting(chat))
        for name in ("first", "second"):
            card = ModelCard(provider="chat", model=name, tier="standard", prices=PRICES)
            await platform.bus.ask(PutModel(tenant="default", card=card), ModelCard)
        state = ProviderState(until=time.time() + 60, condition=Condition.FAILING)
        await platform.bus.nc.publish(subject("chat/first"), state.model_dump_json().encode())
        plan = PlanJob(
            tenant="default", job=SubmitJob(agent="assistant", input="x", options=JobOptions(task_type="drafting"))
        )

        async def heard() -> bool:
            return (await platform.bus.ask(plan, Planned)).route.model == "second"

        await until(heard, why="the router has heard")
        await platform.submit("j1", task_type="drafting")
        ended = await platform.wait_for("j1")

    [routed] = [event for event in await platform.events("j1") if isinstance(event, JobRouted)]
    assert (ended.status, ended.route.model) == ("completed", "second")
    assert "but chat/first keeps failing, so the primary slot takes it with chat/second" in routed.route.reason
    assert routed.away == (Away(slot="primary", model="chat/first", why="keeps failing"),)
    submitted = (await platform.job("j1")).life.submitted
    assert submitted is not None
    assert choose_again(submitted, routed, policy=current_policy()).route == routed.route
