"""Each prompt of a session begins with the whole of the one before, over the jobs of it: providers that check agree."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
import pytest_asyncio

from wayline.contracts import events as e
from wayline.contracts.models import ModelCard, PutModel
from wayline.executor.replay import replay
from wayline.executor.settings import Settings as ExecutorSettings
from wayline.journal import read_export, read_exported_history
from wayline.llm.catalogue import bundled
from wayline.router.settings import Settings as RouterSettings
from wayline.simulator import Asked, Charge, Say, Simulator
from wayline.testkit import Platform

from .conftest import http_with_key
from .ended_jobs import differences

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

CLAUDE, GPT = "anthropic/claude-sonnet-5-5", "openai/gpt-6.1-terra"
CLOCK = "get_current_time"
LONG = "The tide comes in and goes out again, as it did yesterday. " * 40
SUMMARY = "They talked of the tide."


def says(asked: Asked) -> Say:
    """Call a tool where the user asks for the time, and answer."""
    if asked.attempt.rpartition("/")[2].startswith("a"):
        return Say(text=SUMMARY)
    if asked.text.startswith("time") and not asked.results:
        return Say(text="I look.", tools=((CLOCK, {}),), thinking="What time is it?")
    return Say(text=f"{asked.text.split()[0]}: {LONG}", thinking="Let me see.")


@dataclass
class Conversation:
    platform: Platform
    simulator: Simulator
    model: str
    turns: int = 0

    async def say(self, text: str, *, session: str = "s1", agent: str = "talker", **options: Any) -> str:
        """Submit the next turn and wait for its end."""
        self.turns += 1
        job_id = f"j{self.turns}"
        options = {"model": self.model, "budget_usd": "5", **options}
        body = {"agent": agent, "input": text, "job_id": job_id, "session_id": session, "options": options}
        await self.platform.publish(body)
        job = await self.platform.wait_for(job_id)
        assert job.status == "completed", job.error
        return job_id

    async def asked(self, *job_ids: str) -> list[e.ModelRequested]:
        return [asked for job_id in job_ids for asked in await self.platform.events_of(job_id, e.ModelRequested)]

    def charges(self) -> list[Charge]:
        """The calls of conversations on the provider's bill, in their order."""
        return [one for one in self.simulator.bill.charges if "/m" in one.attempt]

    async def put_card(self, **changes: Any) -> None:
        card = next(card for card in bundled() if card.name == self.model).model_copy(update=changes)
        await self.platform.bus.ask(PutModel(tenant=self.platform.tenant, card=card), ModelCard)


async def start(platform: Platform, provider: Simulator, *services: str) -> None:
    urls: dict[str, Any] = {"anthropic_base_url": provider.url, "openai_base_url": provider.openai_url}
    router, executor = RouterSettings(**urls), ExecutorSettings(**urls, tool_wait_s=2.0)
    await platform.start("router", "tool_registry", "executor", *services, router=router, executor=executor)


async def converse(platform: Platform, provider: Simulator, model: str) -> Conversation:
    instructions = "You know the sea. " * 300
    await platform.put_agent("talker", instructions=instructions, tools=(CLOCK,), max_output_tokens=1_500)
    return Conversation(platform, provider, model)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def provider(module_platform: Platform) -> AsyncIterator[Simulator]:
    """The models of services for all tests that stop none."""
    provider = await module_platform.simulate(says)
    await start(module_platform, provider, "gateway")
    yield provider
    assert await differences(module_platform.bus) == []


@pytest_asyncio.fixture(loop_scope="module", params=[CLAUDE, GPT])
async def talk(module_platform: Platform, provider: Simulator, request: pytest.FixtureRequest) -> Conversation:
    provider.play(says)
    return await converse(await module_platform.new_tenant(), provider, request.param)


@pytest.fixture(params=[CLAUDE, GPT])
async def own_talk(platform: Platform, request: pytest.FixtureRequest) -> Conversation:
    """A conversation on a platform of the test's own, which is to stop its executor."""
    provider = await platform.simulate(says)
    await start(platform, provider)
    return await converse(platform, provider, request.param)


def continue_each_other(charges: list[Charge]) -> bool:
    """Return whether each call read all that the one before had written or read."""
    return all(
        after.usage.cache_read >= before.usage.cache_read + before.usage.cache_write_5m
        for before, after in pairwise(charges)
    )


async def test_each_turn_reads_the_whole_prompt_of_the_turn_before(talk: Conversation):
    jobs = [await talk.say(text) for text in ("hello", "time please", "and then?", "thanks")]

    asked = await talk.asked(*jobs)
    assert [one.cache_break for one in asked] == [None] * 5
    assert continue_each_other(talk.charges())
    later = talk.charges()[1:]
    assert sum(one.usage.cache_read for one in later) / sum(one.usage.input for one in later) > 0.7
    [continued] = await talk.platform.events_of(jobs[2], e.SessionContinued)
    assert continued.after is not None
    # One more where the registry listed its tools only after the first call.
    assert continued.messages in (6, 7)
    assert (continued.after.job_id, continued.lost) == ("j2", None)
    assert [one.tools for one in asked[1:]] == [None] * 4


async def test_the_log_of_a_turn_does_not_grow_with_its_session(talk: Conversation):
    jobs = [await talk.say("hello again") for _ in range(5)]

    sizes = []
    for job_id in jobs:
        events = await talk.platform.events(job_id)
        sizes.append(sum(len(event.model_dump_json()) for event in events))
    assert max(sizes[1:]) - min(sizes[1:]) < len(LONG)


async def test_a_fork_of_a_later_turn_begins_with_its_history(talk: Conversation):
    await talk.say("hello")
    second = await talk.say("time please")
    [result] = await talk.platform.events_of(second, e.ToolCompleted)
    body = {"agent": "talker", "input": "time please", "job_id": "fork", "options": {"model": talk.model}}

    await talk.platform.publish({**body, "fork": {"job_id": second, "after": result.seq}})

    assert (await talk.platform.wait_for("fork")).status == "completed"
    [asked] = await talk.asked("fork")
    _, answered = await talk.asked(second)
    assert (asked.prefix, asked.cache_break) == (answered.prefix, None)
    assert talk.simulator.requests[-1].turns == talk.simulator.requests[-2].turns
    file = (await (await http_with_key(talk.platform)).get("/v1/jobs/fork/export")).json()
    replayed = replay(read_export(file), history=read_exported_history(file))
    assert (replayed.divergence, replayed.is_history_compared) == (None, True)


@pytest.mark.asyncio(loop_scope="function")
async def test_another_executor_reads_the_same_history_from_the_logs(own_talk: Conversation):
    first = await own_talk.say("time please")
    await own_talk.platform.stop("executor")
    simulator = own_talk.simulator
    urls: dict[str, Any] = {"anthropic_base_url": simulator.url, "openai_base_url": simulator.openai_url}
    await own_talk.platform.start("executor", executor=ExecutorSettings(**urls, histories_kept_max_bytes=0))

    second, third = await own_talk.say("and now?"), await own_talk.say("and then?")

    assert [one.cache_break for one in await own_talk.asked(first, second, third)] == [None] * 4
    assert continue_each_other(own_talk.charges())


async def test_a_long_session_is_compacted_once_and_goes_on_from_there(talk: Conversation):
    await talk.put_card(context_window=6_000 if talk.model == CLAUDE else 6_500)

    jobs = [await talk.say(f"turn {n} of the talk") for n in range(9)]

    breaks = {job: [one.cache_break for one in await talk.asked(job)] for job in jobs}
    compacted = [job for job in jobs if await talk.platform.events_of(job, e.ContextCompacted)]
    assert compacted
    assert {job for job, found in breaks.items() if found != [None]} == {*compacted}
    assert {cause for job in compacted for cause in breaks[job]} == {"compaction"}
    after = jobs[jobs.index(compacted[0]) + 1]
    [continued] = await talk.platform.events_of(after, e.SessionContinued)
    assert continued.messages <= 4


async def test_another_agent_goes_on_with_the_words_alone(talk: Conversation):
    await talk.platform.put_agent("other", instructions="You know the land. " * 300, tools=())
    await talk.say("time please")

    second = await talk.say("and you?", agent="other")

    [asked] = await talk.asked(second)
    [continued] = await talk.platform.events_of(second, e.SessionContinued)
    assert (asked.cache_break, continued.unbound, continued.tools) == ("agent_changed", True, None)
    assert "time please" in str(talk.simulator.requests[-1].turns)


@pytest.mark.asyncio(loop_scope="function")
async def test_a_session_whose_log_is_gone_goes_on_and_says_so(own_talk: Conversation):
    first = await own_talk.say("hello")
    await own_talk.platform.bus.js.purge_stream("EVENTS", subject=f"events.default.{first}")
    await own_talk.platform.stop("executor")
    simulator = own_talk.simulator
    urls: dict[str, Any] = {"anthropic_base_url": simulator.url, "openai_base_url": simulator.openai_url}
    await own_talk.platform.start("executor", executor=ExecutorSettings(**urls))

    second = await own_talk.say("still there?")

    [continued] = await own_talk.platform.events_of(second, e.SessionContinued)
    [asked] = await own_talk.asked(second)
    assert (continued.lost, asked.cache_break) == ("the log of job j1 is gone", "history_lost")
    assert "not available any more" in str(own_talk.simulator.requests[-1].turns)


async def test_jobs_that_said_nothing_are_passed_over(talk: Conversation):
    await talk.say("hello")
    body = {"agent": "talker", "input": "no", "job_id": "r", "session_id": "s1"}
    await talk.platform.publish({**body, "options": {"model": talk.model, "budget_usd": "0"}})
    assert (await talk.platform.wait_for("r")).status == "failed"

    last = await talk.say("still there?")

    [continued] = await talk.platform.events_of(last, e.SessionContinued)
    assert continued.after is not None and continued.after.job_id == "j1"
    assert [one.cache_break for one in await talk.asked(last)] == [None]
