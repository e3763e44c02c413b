"""The same scripted jobs on every wire format: real router, executor and tools, real SDKs, simulated providers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from typing import Any

import orjson
import pytest
import pytest_asyncio

from wayline.contracts import events as e
from wayline.contracts.jobs import JobView
from wayline.contracts.money import Usage
from wayline.executor.settings import Settings as ExecutorSettings
from wayline.router.settings import Settings as RouterSettings
from wayline.simulator import Asked, Charge, Say, Simulator
from wayline.testkit import Platform, until
from wayline.testkit.walks import cases

from ..simulator.jobs import JOBS
from .conftest import index_document, with_tools
from .ended_jobs import differences
from .four_models import CLAUDE, FACTS, FOUR, GPT, IN_WORDS, OWN, endpoints, put_own
from .test_discovering import box, listing

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

NO_TEMPERATURE = "temperature dropped: the model takes none"
NOTES = {
    CLAUDE: (NO_TEMPERATURE,),
    GPT: (NO_TEMPERATURE,),
    OWN: (),
    IN_WORDS: (NO_TEMPERATURE, "effort dropped: the model does not reason"),
}
"""What was not sent as the agent has it."""


@dataclass(frozen=True)
class Outcome:
    """What a job did, whichever model did it."""

    answer: str
    steps: int
    asked_for: tuple[tuple[str, ...], ...]
    """What each step searched for."""
    thinking: tuple[str, ...]


EXPECTED = {
    "a search and an answer": Outcome("It is a log. " * 20, 2, (("JetStream",), ()), ("", "")),
    "two calls at once, with thinking": Outcome(
        "Both found.", 3, (("a", "bé"), ("c",), ()), ("Two things to look up.", "One more.", "Enough.")
    ),
    "structured output": Outcome('{"name": "Bern", "people": 134591}', 2, (("Bern",), ()), ("", "")),
}


def expected(name: str, model: str) -> Outcome:
    """In the JSON protocol a model always says a thought: the simulator makes one up where its script has none."""
    found = EXPECTED[name]
    if model != IN_WORDS:
        return found
    return replace(found, thinking=tuple(thought or "The task is clear." for thought in found.thinking))


async def script(asked: Asked) -> Say:
    """The script of the job that asks; its tool stands under its server's name."""
    (name,) = [name for name in JOBS if asked.text.startswith(name)]
    reply = JOBS[name][0](asked)
    say = reply if isinstance(reply, Say) else await reply
    return replace(say, tools=tuple((f"box__{tool}", arguments) for tool, arguments in say.tools))


@dataclass
class ProviderJobs:
    """The same jobs on every provider: the platform, the providers, and what was searched and streamed."""

    platform: Platform
    simulator: Simulator
    searched: list[str] = field(default_factory=list)
    streamed: dict[tuple[str, int, int], str] = field(default_factory=lambda: defaultdict(str))

    async def play(self, model: str) -> dict[str, JobView]:
        """Run every job on one model, beside each other; returns how they ended, by name."""
        for at, (name, (_, schema)) in enumerate(JOBS.items()):
            config = {"instructions": "You are an agent.", "tools": ("box__search",), "output_schema": schema}
            await self.platform.put_agent(f"agent-{at}", **config, effort="low")
            await self.platform.submit(f"j{at}", name, agent=f"agent-{at}", model=model)
        return {name: await self.platform.wait_for(f"j{at}") for at, name in enumerate(JOBS)}

    async def heard(self, job_id: str, spoken: dict[tuple[str, int, int], str]) -> dict[tuple[str, int, int], str]:
        """What was streamed of a job, once nothing of what it said is missing."""

        def mine() -> dict[tuple[str, int, int], str]:
            return {call: text for call, text in self.streamed.items() if call[0] == job_id}

        whole = sum(map(len, spoken.values()))
        await until(lambda: sum(map(len, mine().values())) >= whole, why=f"all text of {job_id} was streamed")
        return mine()

    def charges(self, job_id: str) -> list[Charge]:
        """What the provider bills for a job, by the attempt ids that it was sent."""
        calls = f"{self.platform.tenant}/{job_id}/"
        return [charge for charge in self.simulator.bill.charges if charge.attempt.startswith(calls)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(module_platform: Platform) -> AsyncIterator[ProviderJobs]:
    """The providers, and services with one tool, for all tests."""
    platform = module_platform
    simulator = await platform.simulate(script, models=FACTS)
    jobs = ProviderJobs(platform, simulator)

    def search(q: str, n: int = 1) -> str:
        """Find."""
        jobs.searched.append(q)
        return f"{n} of {q}: found."

    async def hear(message: Any) -> None:
        delta = orjson.loads(message.data)
        job_id = message.subject.rpartition(".")[2]
        jobs.streamed[job_id, delta["step"], delta["attempt"]] += delta["text"]

    async with box() as server:
        server.mcp.add_tool(search)
        await platform.start(
            *("router", "executor", "tool_registry"),
            router=RouterSettings(**endpoints(simulator)),
            executor=ExecutorSettings(**endpoints(simulator)),
            tool_registry=with_tools({**server.settings(), "effects": {"search": "once"}}),
        )
        await listing(platform, "search")
        await platform.bus.nc.subscribe("deltas.>", cb=hear)
        yield jobs
        assert await differences(platform.bus) == []


@pytest_asyncio.fixture(loop_scope="module")
async def jobs(shared: ProviderJobs) -> ProviderJobs:
    """The same as a tenant of the test's own, for which nothing was asked, searched and streamed."""
    shared.simulator.play(script)
    shared.searched.clear()
    shared.streamed.clear()
    platform = await shared.platform.new_tenant()
    await put_own(platform)
    return replace(shared, platform=platform)


def answers(events: list[e.Event]) -> list[e.ModelCompleted]:
    return [event for event in events if isinstance(event, e.ModelCompleted)]


def outcome(job: JobView, events: list[e.Event]) -> Outcome:
    messages = [each.message for each in answers(events)]
    return Outcome(
        answer=job.answer or "",
        steps=job.steps,
        asked_for=tuple(tuple(call.arguments["q"] for call in each.tool_calls) for each in messages),
        thinking=tuple(each.thinking for each in messages),
    )


@pytest.mark.parametrize("model", FOUR)
async def test_the_same_three_jobs_do_the_same_on_every_wire_format(jobs: ProviderJobs, model: str):
    ended = await jobs.play(model)

    for at, (name, job) in enumerate(ended.items()):
        events = await jobs.platform.events(f"j{at}")
        assert (job.status, job.error, job.route and job.route.name) == ("completed", None, model), name
        assert outcome(job, events) == expected(name, model), name
        assert [event for event in events if isinstance(event, e.ModelFailed)] == []
        assert {event.status for event in events if isinstance(event, e.ToolCompleted)} == {"success"}

        # To the nano-dollar what the provider bills, which keeps its own prices.
        charges = jobs.charges(f"j{at}")
        assert [each.attempt_id for each in answers(events)] == [charge.attempt for charge in charges]
        assert [each.usage for each in answers(events)] == [charge.usage for charge in charges]
        assert (job.usage, job.cost_usd) == (sum((c.usage for c in charges), Usage()), sum(c.usd for c in charges))
        assert job.cost_usd is not None and job.cost_usd > 0
        assert job.costs is not None and job.costs.model == {model: job.cost_usd}

        spoken = {(f"j{at}", each.step, each.attempt): each.message.text for each in answers(events)}
        assert await jobs.heard(f"j{at}", spoken) == {call: text for call, text in spoken.items() if text}
        for each in answers(events):
            assert each.notes == NOTES[model]

    assert sorted(jobs.searched) == sorted(["JetStream", "a", "bé", "c", "Bern"])
    check_requests(jobs.simulator.requests, model)


def check_requests(asked: list[Asked], model: str) -> None:
    """Each provider was asked for what it can do, and for nothing else."""
    assert {each.stream for each in asked} == {True}
    assert {each.speaks_json for each in asked} == {model == IN_WORDS}
    assert {bool(each.body.get("tools")) for each in asked} == {model != IN_WORDS}
    assert {each.body.get("temperature") for each in asked} == ({0.7} if model == OWN else {None})
    structured = [each for each in asked if each.text.startswith("structured output")]
    assert [(each.schema or {})["required"] for each in structured] == [["name", "people"]] * 2


BLOCKS = {
    CLAUDE: lambda body: [block for message in body["messages"] for block in message["content"]],
    GPT: lambda body: body["input"],
    OWN: lambda body: body["messages"],
}
THOUGHTS = {CLAUDE: "thinking", GPT: "encrypted_content", OWN: "reasoning"}


@pytest.mark.parametrize("model", cases([CLAUDE, GPT, OWN]))
async def test_what_a_model_thought_goes_back_to_it_as_it_came(jobs: ProviderJobs, model: str):
    await jobs.play(model)

    events = await jobs.platform.events("j1")
    calls = f"{jobs.platform.tenant}/j1/"
    first, second, third = [each for each in jobs.simulator.requests if each.attempt.startswith(calls)]
    for before, sent in zip(answers(events), (second, third), strict=False):
        assert before.message.verbatim is not None
        kept = [without_mark(block) for block in before.message.verbatim.blocks]
        assert any(block.get(THOUGHTS[model]) for block in kept)
        blocks = [without_mark(block) for block in BLOCKS[model](sent.body)]
        at = blocks.index(kept[0])
        assert blocks[at : at + len(kept)] == kept
    assert not any(block.get(THOUGHTS[model]) for block in BLOCKS[model](first.body))


def without_mark(block: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in block.items() if name != "cache_control"}


@pytest.mark.asyncio(loop_scope="function")
async def test_the_knowledge_job_runs_on_the_offline_model(platform: Platform):
    await platform.start("router", "executor", "tool_registry", "retrieval")
    text = "A lease is renewed every two seconds while its tool runs. An expired lease means that nobody knows."
    await index_document(platform, "d1", "leases.md", text)
    await platform.submit("k1", "How often is a lease renewed?")

    job = await platform.wait_for("k1")
    assert job.route is not None
    assert (job.status, job.route.name, job.steps, job.cost_usd) == ("completed", "offline/extractive", 2, 0)
    assert "renewed every two seconds" in (job.answer or "")
    assert [citation.document for citation in job.citations] == ["leases.md"]
    called = [event.tool for event in await platform.events("k1") if isinstance(event, e.ToolCompleted)]
    assert called == ["search_knowledge"]
