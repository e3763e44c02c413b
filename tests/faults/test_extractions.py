"""`kill -9` while a quiet session is read for what lasts, or memories are summarised: one job, paid and kept once."""

from __future__ import annotations

import json

import pytest
import pytest_asyncio

from wayline.chassis import Failpoint
from wayline.contracts import events as e
from wayline.contracts.agents import Agent, AgentConfig, PutAgent, Routing
from wayline.contracts.memory import FactPage, FactsSaved, ListMemories, SaveMemories
from wayline.contracts.models import ModelCard, PutModel, Tier
from wayline.executor.replay import replay
from wayline.simulator.chat_server import Say
from wayline.testkit import until

from .conftest import MakePlatform
from .kill_points import kill_points
from .platform import TENANT, FaultPlatform, says
from .test_service_failpoints import EXTRACTIONS

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

FACT = {"fact": "Lives in Bonn.", "category": "profile", "tier": "core", "quote": "I live in Bonn"}
COFFEE = ("Drinks dark coffee.", "Drinks coffee black.", "Drinks coffee cold.")
SUMMARY = "Drinks dark coffee, black, cold."
WANTED = """
INSERT INTO router.memory_summaries (tenant, user_id, agent, wanted_at)
VALUES ($1, $2, 'keeper', now() - interval '2 hours')
"""
ANSWER = Say(json.dumps({"facts": [FACT]}))
# The claim shares its record with the call's intent.
EXECUTOR = [
    Failpoint.EXECUTOR_CLAIM_BEFORE,
    Failpoint.EXECUTOR_CLAIM_AFTER,
    Failpoint.EXECUTOR_AUX_AFTER,
    Failpoint.EXECUTOR_RESULT_BEFORE,
    Failpoint.EXECUTOR_RESULT_AFTER,
    Failpoint.EXECUTOR_MEMORY_AFTER,
    Failpoint.EXECUTOR_END_BEFORE,
    Failpoint.EXECUTOR_SETTLE_AFTER,
]
LOST = {Failpoint.EXECUTOR_CLAIM_AFTER, Failpoint.EXECUTOR_AUX_AFTER, Failpoint.EXECUTOR_RESULT_BEFORE}
"""There it is not known whether the model was paid, and nobody asks twice."""
QUICK = {Failpoint.ROUTER_EXTRACTION_AFTER, Failpoint.EXECUTOR_AUX_AFTER}
"""What `make test` runs of them."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def platform(make_platform: MakePlatform) -> FaultPlatform:
    platform = await make_platform("retrieval")
    platform.fleet.set("router", WAYLINE_ROUTER_EXTRACTION_QUIET_S="3600", WAYLINE_ROUTER_EXTRACTION_EVERY_S="0.05")
    await platform.fleet.ensure("router", "tool_registry", "retrieval")
    tiers: dict[str, Tier] = {"helper": "flash", "plain": "standard"}
    for model, tier in tiers.items():
        card = ModelCard(provider="chat", model=model, tier=tier)
        await platform.bus.ask(PutModel(tenant=TENANT, card=card), ModelCard)
    routing = Routing(fast="chat/helper", primary="chat/plain", escalation="chat/plain")
    config = AgentConfig(routing=routing, extract_memories=True, tools=())
    await platform.bus.ask(PutAgent(tenant=TENANT, name="keeper", config=config), Agent)
    platform.helper = ANSWER
    return platform


async def talk(platform: FaultPlatform, name: str) -> None:
    """Let a session of one turn end; nobody reads it, because it is not quiet for long enough."""
    await platform.fleet.ensure("router", "executor")
    await platform.submit_plan(
        name, says("Fine.", said="I live in Bonn"), agent="keeper", model=None, session=name, user=name
    )
    await platform.until_ended(name)
    await platform.until_quiet()
    await platform.fleet.stop("executor")


async def fall_silent(platform: FaultPlatform, name: str) -> None:
    """Have a session's last turn be hours ago."""
    hours = "interval '2 hours'"
    await platform.sql(f"UPDATE router.session_turns SET ended_at = ended_at - {hours} WHERE session_id = $1", name)
    await platform.sql(f"UPDATE router.sessions SET updated_at = updated_at - {hours} WHERE session_id = $1", name)


async def reader_of(platform: FaultPlatform, name: str) -> str:
    async def found() -> str | None:
        rows = await platform.sql("SELECT read_by FROM router.session_turns WHERE job_id = $1", name)
        return rows[0]["read_by"]

    reader = await until(found, within=60, why="the session is given to a job")
    assert reader is not None
    return reader


async def all_sent(platform: FaultPlatform) -> bool:
    return await platform.sql("SELECT job_id FROM router.extractions") == []


async def finish(platform: FaultPlatform, name: str, *, kept: bool) -> None:
    """Let others end the job, and check that all of it happened once at most."""
    await platform.fleet.ensure("router", "executor")
    reader = await reader_of(platform, name)
    await platform.until_ended(reader)
    await platform.until_quiet()
    await platform.check(name, reader)
    events = await platform.events(reader)
    assert replay(events).divergence is None
    asked = [attempt for attempt, _ in platform.chat.calls if attempt.startswith(f"{TENANT}/{reader}/")]
    assert len(asked) <= 1
    page = await platform.bus.ask(ListMemories(tenant=TENANT, user_id=name), FactPage)
    facts = [(one.text, one.times, one.trust) for one in page.facts]
    assert facts == ([("Lives in Bonn.", 1, "own")] if kept else [])
    completed = [event for event in events if isinstance(event, e.AuxiliaryCompleted)]
    assert len(completed) == len([event for event in events if isinstance(event, e.MemorySaved)]) == int(kept)
    await until(lambda: all_sent(platform), why="the bus has the job, and the tables say so")
    await platform.until_quiet()
    jobs = await platform.sql("SELECT job_id FROM router.reservations WHERE user_id = $1", name)
    assert len(jobs) == 2


@pytest.mark.parametrize("point", kill_points(((one,) for one in EXECUTOR), QUICK))
async def test_a_killed_reader_pays_and_keeps_once(platform: FaultPlatform, point: Failpoint):
    name = point.replace(".", "-")
    await talk(platform, name)
    await fall_silent(platform, name)
    doomed = await platform.fleet.start("executor", point)

    await platform.until_dead(doomed, await reader_of(platform, name))

    await finish(platform, name, kept=point not in LOST)


@pytest.mark.parametrize("point", kill_points(((one,) for one in sorted(EXTRACTIONS)), QUICK))
async def test_a_router_killed_there_gives_a_session_to_one_job(platform: FaultPlatform, point: Failpoint):
    name = point.replace(".", "-")
    await talk(platform, name)
    await platform.fleet.stop("router")
    doomed = await platform.fleet.start("router", point)
    await fall_silent(platform, name)

    await platform.until_dead(doomed)

    await finish(platform, name, kept=True)


async def want_summary(platform: FaultPlatform, name: str) -> None:
    """Have three facts be remembered of a user, and a summary of them be wanted for hours."""
    await platform.fleet.ensure("retrieval")
    platform.helper = Say(json.dumps({"summaries": [{"of": [1, 2, 3], "text": SUMMARY}]}))
    facts = [{"text": text, "category": "preference"} for text in COFFEE]
    saving = {"tenant": TENANT, "key": name, "user_id": name, "facts": facts, "written": {"source": "user_noted"}}
    await platform.bus.ask(SaveMemories.model_validate(saving), FactsSaved)
    await platform.sql(WANTED, TENANT, name)


async def summary_of(platform: FaultPlatform, name: str) -> str:
    async def found() -> str | None:
        rows = await platform.sql("SELECT job_id FROM router.reservations WHERE user_id = $1", name)
        return rows[0]["job_id"] if rows else None

    job_id = await until(found, within=60, why="a job summarises")
    assert job_id is not None
    return job_id


async def finish_summary(platform: FaultPlatform, name: str, *, kept: bool) -> None:
    """Let others end the job, and check that it was paid for once at most, and that all of it counts or nothing."""
    await platform.fleet.ensure("router", "executor")
    job_id = await summary_of(platform, name)
    await platform.until_ended(job_id)
    await platform.until_quiet()
    await platform.check(job_id)
    assert replay(await platform.events(job_id)).divergence is None
    asked = [attempt for attempt, _ in platform.chat.calls if attempt.startswith(f"{TENANT}/{job_id}/")]
    assert len(asked) <= 1
    page = await platform.bus.ask(ListMemories(tenant=TENANT, user_id=name), FactPage)
    assert sorted(one.text for one in page.facts) == ([SUMMARY] if kept else sorted(COFFEE))
    await until(lambda: all_sent(platform), why="the bus has the job, and the tables say so")
    assert len(await platform.sql("SELECT job_id FROM router.reservations WHERE user_id = $1", name)) == 1
    platform.helper = ANSWER


@pytest.mark.parametrize("point", kill_points(((one,) for one in EXECUTOR), {Failpoint.EXECUTOR_MEMORY_AFTER}))
async def test_a_killed_summary_is_paid_and_kept_once(platform: FaultPlatform, point: Failpoint):
    name = f"sum-{point.replace('.', '-')}"
    await platform.fleet.stop("executor")
    doomed = await platform.fleet.start("executor", point)
    await platform.fleet.ensure("router")
    await want_summary(platform, name)

    await platform.until_dead(doomed, await summary_of(platform, name))

    await finish_summary(platform, name, kept=point not in LOST)


@pytest.mark.parametrize("point", kill_points(((one,) for one in sorted(EXTRACTIONS)), ()))
async def test_a_router_killed_there_begins_one_summary(platform: FaultPlatform, point: Failpoint):
    name = f"sum-{point.replace('.', '-')}"
    await platform.fleet.stop("router")
    doomed = await platform.fleet.start("router", point)
    await want_summary(platform, name)

    await platform.until_dead(doomed)

    await finish_summary(platform, name, kept=True)


async def test_a_memory_that_is_away_is_waited_for(platform: FaultPlatform):
    name = "away"
    await talk(platform, name)
    await fall_silent(platform, name)
    await platform.fleet.stop("retrieval")
    await platform.fleet.start("executor")
    reader = await reader_of(platform, name)

    async def handed_back() -> bool:
        return any(isinstance(event, e.JobHandedBack) for event in await platform.events(reader))

    await until(handed_back, within=60, why="the facts wait for a memory that answers")
    await platform.fleet.start("retrieval")

    await finish(platform, name, kept=True)
