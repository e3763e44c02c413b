"""A job that steers hands its words to the job that runs: they are said once, there or in a turn of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from wayline.contracts import events as e
from wayline.contracts.jobs import Status, Steer
from wayline.executor.hold.log_writer import LogWriter
from wayline.executor.perform import paid_call
from wayline.executor.replay import replay
from wayline.journal import JobLog, export_job, read_export
from wayline.router.sessions.turns import Turns
from wayline.simulator.chat_server import ChatServer, Say
from wayline.testkit import Platform, until
from wayline.testkit.effects_server import EffectsServer
from wayline.testkit.walks import length

from .conftest import chatting, with_tools
from .held_session import Session

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

CLOCK = "get_current_time"


class Steered(Session):
    """A session of which the test knows what its jobs have heard of each other."""

    tools: set[str]
    """Jobs whose model asks for the time before it answers."""
    words: list[str]
    """The jobs whose words were heard, in order."""
    chat: ChatServer

    def say(self, body: dict[str, Any]) -> Say:
        answer = super().say(body)
        if self.asked[-1] in self.tools:
            self.tools.discard(self.asked[-1])
            return Say("Let me look.", ((CLOCK, {}),), hold=answer.hold)
        return answer

    async def steer(self, job_id: str, **more: Any) -> None:
        await self.submit(job_id, when_busy="steer", **more)

    async def heard(self, *job_ids: str) -> None:
        await until(lambda: set(job_ids) <= set(self.words), why=f"{job_ids} are heard")

    def prompts(self, job_id: str) -> list[list[dict[str, Any]]]:
        """Return the messages of each call of a job."""
        calls = self.chat.calls
        return [body["messages"] for attempt, body in calls if attempt.startswith(f"{self.platform.tenant}/{job_id}/")]


@pytest_asyncio.fixture(loop_scope="module")
async def session(
    module_platform: Platform, shared_chat: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Steered]:
    session = Steered(await module_platform.new_tenant())
    session.words, session.tools = [], set()
    note = LogWriter.note

    def listening(writer: LogWriter, kind: type[e.Event], *args: Any, **payload: Any) -> e.Event:
        event = note(writer, kind, *args, **payload)
        if isinstance(event, e.SessionSteered):
            session.words.append(event.by)
        return event

    monkeypatch.setattr(LogWriter, "note", listening)
    session.chat = shared_chat
    shared_chat.script = session.say
    await session.platform.put_agent("talker", instructions="Talk.", tools=(CLOCK,))
    yield session
    await session.end()


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Running jobs are told of others' words once this is set."""
    tell, told = Turns._tell, asyncio.Event()

    async def waiting(*args: Any, **more: Any) -> bool:
        await told.wait()
        return await tell(*args, **more)

    monkeypatch.setattr(Turns, "_tell", waiting)
    return told


async def replays(platform: Platform, job_id: str) -> bool:
    head = await JobLog(platform.bus, platform.tenant, job_id).last()
    assert head is not None
    records = await JobLog(platform.bus, platform.tenant, job_id).records(head.sequence)
    return replay(read_export(export_job([value for record in records for value in record]))).divergence is None


async def test_a_steering_jobs_words_are_answered_by_the_running_job(session: Steered):
    platform = session.platform
    await session.submit("j1", held=True)
    await session.running("j1")
    await session.steer("j2", held=True)
    await session.heard("j2")

    session.gates["j1"].set()
    await session.running("j2")

    handed = await platform.wait_for("j2")
    assert (handed.status, handed.handed_to, handed.steps) == (Status.COMPLETED, "j1", 0)
    assert handed.answer == "Handed to job j1, which was running: its answer takes this into account."
    assert (await platform.job("j1")).life.ended is None
    session.gates["j2"].set()
    answered = await platform.wait_for("j1")
    assert (answered.status, answered.steps, answered.handed_to) == (Status.COMPLETED, 2, None)
    first, second = session.prompts("j1")
    assert second[: len(first)] == first
    assert [message["role"] for message in second[len(first) :]] == ["assistant", "user"]
    asked = await platform.events_of("j1", e.ModelRequested)
    assert [event.cache_break for event in asked] == [None, None]
    assert session.prompts("j2") == []
    assert await replays(platform, "j1") and await replays(platform, "j2")


async def test_words_come_after_the_results_of_open_tool_calls(session: Steered):
    session.tools.add("j1")
    await session.submit("j1", held=True)
    await session.running("j1")
    await session.steer("j2")
    await session.heard("j2")

    session.gates["j1"].set()

    assert (await session.platform.wait_for("j1")).steps == 2
    assert [one["role"] for one in session.prompts("j1")[1]] == ["system", "user", "assistant", "tool", "user"]
    assert (await session.platform.wait_for("j2")).handed_to == "j1"
    assert await replays(session.platform, "j1")


async def test_words_that_come_while_money_is_held_join_that_call(session: Steered, monkeypatch: pytest.MonkeyPatch):
    fund, reached = paid_call.fund, asyncio.Event()

    async def slowly(run: Any, *args: Any, **more: Any) -> Any:
        if run.writer.job.job_id == "j1":
            reached.set()
            await run.held.listening(session.heard("j2"))
        return await fund(run, *args, **more)

    monkeypatch.setattr(paid_call, "fund", slowly)
    await session.submit("j1")
    await reached.wait()
    await session.steer("j2")

    assert (await session.platform.wait_for("j1")).steps == 1
    assert (await session.platform.wait_for("j2")).handed_to == "j1"
    assert session.asked == ["j2"]
    assert await replays(session.platform, "j1")


async def test_the_next_job_goes_on_from_the_steered_answer(session: Steered):
    await session.submit("j1", held=True)
    await session.running("j1")
    await session.steer("j2")
    await session.heard("j2")
    session.gates["j1"].set()
    await session.platform.wait_for("j1")

    await session.submit("j3")
    await session.platform.wait_for("j3")

    before, after = session.prompts("j1")[1], session.prompts("j3")[0]
    assert after[: len(before)] == before
    assert sum("I am j2 ." in str(message["content"]) for message in after) == 1
    [asked] = await session.platform.events_of("j3", e.ModelRequested)
    assert asked.cache_break is None


async def test_words_for_a_job_that_has_ended_become_a_turn(session: Steered, late: asyncio.Event):
    await session.submit("j1", held=True)
    await session.running("j1")
    await session.steer("j2")
    await session.waiting("j2")
    session.gates["j1"].set()
    await session.platform.wait_for("j1")
    late.set()

    own = await session.platform.wait_for("j2")

    assert (own.handed_to, own.steps, session.asked) == (None, 1, ["j1", "j2"])
    assert session.words == []
    await session.platform.wait_until_empty("SUBMIT", "RUN")


async def test_words_that_no_step_is_left_for_become_a_turn(session: Steered):
    await session.submit("j1", held=True, max_steps=1)
    await session.running("j1")
    await session.steer("j2")
    await session.heard("j2")

    session.gates["j1"].set()

    first, own = [await session.platform.wait_for(job) for job in ("j1", "j2")]
    assert (first.partial, first.answer, own.handed_to, own.steps) == (False, "Yes indeed.", None, 1)
    assert sum("I am j2 ." in str(message["content"]) for message in session.prompts("j2")[0]) == 1


async def test_a_cancelled_running_job_leaves_unsaid_words_to_a_turn(session: Steered):
    await session.submit("j1", held=True)
    await session.running("j1")
    await session.steer("j2")
    await session.heard("j2")

    await session.platform.signal("j1", type="cancel")

    assert (await session.platform.wait_for("j1")).status is Status.CANCELLED
    assert (await session.platform.wait_for("j2")).handed_to is None
    assert session.asked == ["j1", "j2"]


async def test_a_job_cancelled_after_taking_words_names_their_jobs(session: Steered):
    await session.submit("j1", held=True)
    await session.running("j1")
    await session.steer("j2", held=True)
    await session.heard("j2")
    session.gates["j1"].set()
    await session.running("j2")

    await session.platform.signal("j1", type="cancel", reason="enough")

    job = await session.platform.wait_for("j1")
    assert (job.status, job.reason) == (
        Status.CANCELLED,
        "enough; it had taken what these jobs said, and did not answer: j2",
    )
    assert (await session.platform.wait_for("j2")).handed_to == "j1"
    assert session.prompts("j2") == []
    assert await replays(session.platform, "j1") and await replays(session.platform, "j2")


async def test_a_cancelled_steering_job_says_nothing(session: Steered, late: asyncio.Event):
    await session.submit("j1", held=True)
    await session.running("j1")
    await session.steer("j2")
    await session.waiting("j2")
    await session.platform.signal("j2", type="cancel")
    assert (await session.platform.wait_for("j2")).status is Status.CANCELLED

    late.set()
    await session.platform.wait_until_empty("SUBMIT")
    await session.steer("j3")
    await session.heard("j3")
    session.gates["j1"].set()
    await session.platform.wait_for("j1")

    assert session.words == ["j3"]


async def test_another_users_or_agents_words_wait_for_their_turn(session: Steered):
    platform = session.platform
    await platform.put_agent("other", instructions="Talk, too.", tools=())
    await session.submit("j1", held=True)
    await session.running("j1")
    for job_id, more in (("j2", {"user_id": "eve"}), ("j3", {"agent": "other"})):
        body = {"agent": "talker", "input": f"I am {job_id} .", "job_id": job_id, "session_id": "s1", **more}
        await platform.publish({**body, "options": {"model": "chat/m", "when_busy": "steer"}})
    await session.steer("j4")
    await session.heard("j4")

    session.gates["j1"].set()

    ended = [await platform.wait_for(job) for job in ("j2", "j3", "j4")]
    assert [job.handed_to for job in ended] == [None, None, "j1"]


async def test_a_signal_alone_puts_no_words_into_a_job(session: Steered):
    await session.submit("j1", held=True)
    await session.running("j1")
    await session.submit("j2")
    await session.waiting("j2")
    for by in ("j2", "nobody", "j1"):
        await session.platform.signal("j1", Steer(by=by))
    await session.steer("j3")
    await session.heard("j3")
    session.gates["j1"].set()

    await session.platform.wait_for("j2")

    assert session.words == ["j3"]


@pytest.mark.asyncio(loop_scope="function")
async def test_a_parked_job_takes_words_when_it_goes_on(platform: Platform, effects: EffectsServer):
    await effects.start()
    script = [Say(tools=(("effects__pay_once", {"amount": 1}),)), Say("paid"), Say("own turn")]
    async with ChatServer(lambda body: script[sum(m["role"] == "assistant" for m in body["messages"])]) as chat:
        tools = with_tools(effects.settings())
        await platform.start("router", "executor", "tool_registry", executor=chatting(chat), tool_registry=tools)
        await platform.put_agent("careful", ask="writes", instructions="Pay.")
        body = {"agent": "careful", "input": "Pay one.", "job_id": "j1", "session_id": "s1"}
        await platform.publish({**body, "options": {"model": "chat/m"}})
        [asked] = (await platform.wait_until_parked("j1")).tools.pending
        await platform.publish(
            {**body, "input": "Pay no more.", "job_id": "j2", "options": {"model": "chat/m", "when_busy": "steer"}}
        )
        await platform.wait_until_parked("j2")
        await platform.wait_until_empty("SUBMIT", "RUN")
        resumed = await platform.events_of("j1", e.JobResumed)

        await platform.decide("j1", asked.approval_id)

        assert (await platform.wait_for("j1")).answer == "paid"
        assert (await platform.wait_for("j2")).handed_to == "j1"
        messages = chat.calls[-1][1]["messages"]
        assert [one["role"] for one in messages][-2:] == ["tool", "user"]
        assert "Pay no more." in str(messages[-1]["content"])
        assert resumed == []


async def test_words_are_heard_in_the_order_of_their_turns(session: Steered, monkeypatch: pytest.MonkeyPatch):
    begin, slow = JobLog.begin, asyncio.Event()

    async def late(log: JobLog, *args: Any, **more: Any) -> Any:
        if log.job_id == "j2":
            await slow.wait()
        return await begin(log, *args, **more)

    monkeypatch.setattr(JobLog, "begin", late)
    await session.submit("j1", held=True)
    await session.running("j1")
    await session.steer("j2")

    async def turns() -> bool:
        return (await session.state()).turns == 2

    await until(turns, why="j2 has its turn")
    await session.steer("j3")
    await session.waiting("j3")
    slow.set()
    await session.heard("j2", "j3")

    session.gates["j1"].set()
    ended = [await session.platform.wait_for(job) for job in ("j2", "j3")]

    assert session.words == ["j2", "j3"]
    assert [job.handed_to for job in ended] == ["j1", "j1"]


@pytest.mark.timeout(280)
async def test_many_jobs_of_which_most_steer_keep_one_order(session: Steered):
    platform = session.platform
    jobs = [f"j{n}" for n in range(length(200, short=60))]
    steering = {job for n, job in enumerate(jobs) if n % 4}

    await asyncio.gather(*(session.steer(job) if job in steering else session.submit(job) for job in jobs))
    for job in jobs:
        assert (await platform.wait_for(job, within=240)).status is Status.COMPLETED

    logs = {job: await platform.events(job) for job in jobs}
    numbers = {job: log[0].turn.number for job, log in logs.items()}  # type: ignore[attr-defined]
    ordered = sorted(jobs, key=numbers.__getitem__)
    spoke = [job for job in ordered if any(isinstance(event, e.ModelRequested) for event in logs[job])]
    counts = dict.fromkeys(spoke, 1)
    for job in spoke:
        job_words = (await platform.job(job)).session.steered_by
        assert [*job_words] == sorted(job_words, key=numbers.__getitem__)
        assert all(numbers[by] > numbers[job] for by in job_words)
        for by in job_words:
            counts[by] = counts.get(by, 0) + 1
            assert (await platform.job(by)).session.handed_to == job
    assert sorted(numbers.values()) == [*range(1, len(jobs) + 1)]
    assert counts == dict.fromkeys(jobs, 1)
    assert set(jobs) - set(spoke) <= steering and len(spoke) < len(jobs)
    await session.ran_in_order(*spoke)
