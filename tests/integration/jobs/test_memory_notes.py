"""What is remembered is told once as an event: later prompts, replays and forks read the log, never the store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from wayline.contracts import events as e
from wayline.contracts.memory import ChangeMemory, Fact, FactChange, FactsSaved, ForgetMemories, SaveMemories
from wayline.simulator.chat_server import ChatServer, Say
from wayline.testkit import Platform

from .conftest import chatting, http_with_key
from .ended_jobs import differences

pytestmark = [pytest.mark.asyncio(loop_scope="module")]


class Talk:
    """One user's jobs, and what their model was sent."""

    def __init__(self, platform: Platform, chat: ChatServer) -> None:
        self.platform = platform
        self.chat = chat

    async def save(self, text: str, *, tier: str = "core", key: str | None = None, **written: Any) -> str:
        """Remember a fact of ann as her own word; the answer is its id."""
        asked = {"tenant": self.platform.tenant, "key": key or text, "user_id": "ann"}
        facts = [{"text": text, "category": "profile", "tier": tier}]
        written = {"source": "user_noted"} | written
        saved = await self.platform.bus.ask(
            SaveMemories.model_validate(asked | {"facts": facts, "written": written}), FactsSaved
        )
        assert saved.outcomes[0].fact_id is not None, saved.outcomes
        return saved.outcomes[0].fact_id

    async def run(self, job_id: str, text: str = "hello", *, session: str | None = "s1", **body: Any) -> str:
        """Run a job; the answer is all text that its first model call was sent."""
        before = len(self.chat.calls)
        asked = {"agent": "assistant", "input": text, "job_id": job_id, "user_id": "ann", "session_id": session}
        await self.platform.publish(asked | {"options": {"model": "chat/m"}} | body)
        await self.platform.wait_for(job_id)
        return "\n".join(str(one.get("content") or "") for one in self.chat.calls[before][1]["messages"])

    async def injected(self, job_id: str) -> list[e.MemoryInjected]:
        return await self.platform.events_of(job_id, e.MemoryInjected)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chat(module_platform: Platform) -> AsyncIterator[ChatServer]:
    """The model of services for all tests that stop none."""
    async with ChatServer(lambda _: Say(text="fine")) as chat:
        services = ("router", "executor", "tool_registry", "retrieval", "gateway")
        await module_platform.start(*services, executor=chatting(chat))
        yield chat
        assert await differences(module_platform.bus) == []


@pytest_asyncio.fixture(loop_scope="module")
async def talk(module_platform: Platform, chat: ChatServer) -> Talk:
    chat.calls.clear()
    return Talk(await module_platform.new_tenant(), chat)


@pytest.fixture
async def own_talk(platform: Platform) -> AsyncIterator[Talk]:
    """A talk on a platform of the test's own."""
    async with ChatServer(lambda _: Say(text="fine")) as chat:
        await platform.start("router", "executor", "tool_registry", "retrieval", executor=chatting(chat))
        yield Talk(platform, chat)


async def test_a_session_is_told_once_and_then_what_changed(talk: Talk):
    bonn = await talk.save("Lives in Bonn.")
    first = await talk.run("j1")
    second = await talk.run("j2", "and now?")
    changed = ChangeMemory(
        tenant=talk.platform.tenant, fact_id=bonn, change=FactChange(text="Lives in Paris."), by="ann"
    )
    await talk.platform.bus.ask(changed, Fact)
    bees = await talk.save("Keeps bees.")
    third = await talk.run("j3", "and now?")
    await talk.platform.bus.ask(ForgetMemories(tenant=talk.platform.tenant, fact_ids=(bees,)), ForgetMemories.replies)
    fourth = await talk.run("j4", "and now?")

    [told] = await talk.injected("j1")
    assert first.count("[MEMORY]\n") == 1 and '"Lives in Bonn."' in first
    assert [(one.fact_id, one.version, one.why) for one in told.facts] == [(bonn, 1, "core")]
    assert (await talk.injected("j2"), second.count("[MEMORY]\n"), "[MEMORY UPDATE]\n" in second) == ([], 1, False)
    [update] = await talk.injected("j3")
    assert {(one.fact_id, one.version, one.why) for one in update.facts} == {(bonn, 2, "changed"), (bees, 1, "core")}
    assert third.startswith(second) and '"Lives in Paris."' in third
    [last] = await talk.injected("j4")
    assert (last.facts, last.gone) == ((), (bees,))
    assert fourth.startswith(third)
    for job_id in ("j2", "j3", "j4"):
        [asked] = await talk.platform.events_of(job_id, e.ModelRequested)
        assert asked.cache_break is None


@pytest.mark.asyncio(loop_scope="function")
async def test_memory_is_told_anew_after_a_lost_history(own_talk: Talk):
    bonn = await own_talk.save("Lives in Bonn.")
    await own_talk.run("j1")
    await own_talk.run("j2")
    # The log of the job before is there and says what its prompts held, and these cannot be read any more.
    await own_talk.platform.bus.js.purge_stream("EVENTS", subject="events.default.j1")
    await own_talk.platform.stop("executor")
    await own_talk.platform.start("executor", executor=chatting(own_talk.chat))

    sent = await own_talk.run("j3", "and now?")

    [told] = await own_talk.injected("j3")
    [continued] = await own_talk.platform.events_of("j3", e.SessionContinued)
    assert continued.lost is not None and [one.fact_id for one in continued.context.memories] == [bonn]
    assert sent.count("[MEMORY]\n") == 1 and "[MEMORY UPDATE]\n" not in sent
    assert [(one.fact_id, one.version, one.why) for one in told.facts] == [(bonn, 1, "core")]


async def test_only_what_a_user_said_is_told(talk: Talk):
    await talk.save("Lives in Bonn.")
    await talk.save("Owns a yacht.", source="agent_extracted")
    await talk.save("Pays every invoice unseen.", source="agent_extracted", tainted_by=["web_fetch"])

    sent = await talk.run("j1", "who am I, and what about the yacht and the invoice?")

    assert "Lives in Bonn." in sent
    assert "yacht." not in sent and "unseen" not in sent


async def test_a_note_never_takes_more_than_its_tokens(talk: Talk):
    for number in range(8):
        await talk.save(f"Likes number {number}: " + f"{'abcdefgh'[number]}word " * 90, key=str(number))

    await talk.run("j1")

    [told] = await talk.injected("j1")
    assert told.tokens <= 800 and 0 < len(told.facts) < 8


async def test_a_person_sees_why_a_job_was_told_a_fact(talk: Talk):
    bonn = await talk.save("Lives in Bonn.")
    await talk.run("j1")
    client = await http_with_key(talk.platform)

    shown = (await client.get("/v1/jobs/j1/memories")).json()
    await talk.platform.bus.ask(ForgetMemories(tenant=talk.platform.tenant, user_id="ann"), ForgetMemories.replies)
    forgotten = (await client.get("/v1/jobs/j1/memories")).json()

    [told] = shown["told"]
    assert (told["fact_id"], told["version"], told["why"], told["fact"]["text"]) == (bonn, 1, "core", "Lives in Bonn.")
    assert forgotten["told"] == [told | {"fact": None}]


async def test_without_memory_or_user_nothing_is_told(talk: Talk):
    await talk.save("Lives in Bonn.")
    await talk.platform.put_agent("forgetful", memory=False)

    sent = [await talk.run("j1", session=None, agent="forgetful"), await talk.run("j2", session=None, user_id=None)]

    assert not any("Bonn" in one for one in sent)


@pytest.mark.asyncio(loop_scope="function")
async def test_a_job_goes_on_where_retrieval_is_away(own_talk: Talk):
    await own_talk.save("Lives in Bonn.")
    await own_talk.platform.stop("retrieval")

    sent = await own_talk.run("j1")

    assert "Bonn" not in sent
    assert (await own_talk.platform.job("j1")).life.status == "completed"


async def test_a_fork_is_told_all_but_the_excluded_fact(talk: Talk):
    bonn, bees = await talk.save("Lives in Bonn."), await talk.save("Keeps bees.")
    await talk.run("j1", "where do I live?", session=None)
    await talk.platform.bus.ask(ForgetMemories(tenant=talk.platform.tenant, user_id="ann"), ForgetMemories.replies)
    fork = {"job_id": "j1", "without_memory": [bonn]}

    sent = await talk.run("j2", "where do I live?", session=None, fork=fork)

    assert "Keeps bees." in sent and "Lives in Bonn." not in sent
    assert [(one.fact_id) for one in (await talk.platform.job("j2")).context.memories] == [bees]


async def test_a_fork_without_a_fact_that_was_never_told_is_refused(talk: Talk):
    await talk.save("Lives in Bonn.")
    await talk.run("j1", session=None)
    body = {"agent": "assistant", "input": "hello", "job_id": "j2", "user_id": "ann"}

    await talk.platform.publish(body | {"fork": {"job_id": "j1", "without_memory": ["fact_other"]}})
    ended = await talk.platform.wait_for("j2")

    assert ended.error is not None and ended.error.code == "fork_invalid"
