"""Prompts only grow: whatever happens to a job, each one begins with the whole of the one before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wayline.contracts import events as e
from wayline.contracts.agents import AgentConfig
from wayline.contracts.chat import AssistantMessage, NoteMessage, TextPart, ToolCall, ToolMessage, UserMessage
from wayline.contracts.jobs import Failure, Route, SubmitJob
from wayline.contracts.models import CacheRules, ModelCard
from wayline.contracts.money import Usage
from wayline.contracts.tools import RECALL, USE_TOOL, ToolDefinition, ToolError, ToolReply
from wayline.executor.calling import Models
from wayline.executor.condense import shown
from wayline.executor.pen import Pen
from wayline.executor.prompt import Prints, Prompt, assemble, breakpoints, cache_key
from wayline.executor.telling import compared, note_news, offered
from wayline.journal import Head, Job, State, encode, fold, read_record

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CARD = ModelCard(provider="p", model="m", tier="standard", cache=CacheRules(kind="breakpoints", ttl_s=300))
OTHER = ModelCard(provider="p", model="n", tier="premium")
ROUTE = Route(provider="p", model="m", tier="standard", reason="r")
NOBODY: Any = None
MODELS = Models(NOBODY, {})
HEAD = Head(1, State.ACTIVE, 0, "hash")
USER = UserMessage(parts=(TextPart(text="go"),))


def tool(name: str, version: int = 1) -> ToolDefinition:
    return ToolDefinition(name=name, description=f"{name}, {version}", input_schema={"type": "object"})


@dataclass
class Talk:
    """A job played with the executor's own functions, one step after another."""

    listed: tuple[ToolDefinition, ...] = (tool("a"), tool("b"))
    patterns: tuple[str, ...] = ("*",)
    events: list[e.Event] = field(default_factory=list)
    prompts: list[Prompt] = field(default_factory=list)
    wait_s: float = 1

    def __post_init__(self) -> None:
        self.pen = self._pen(Job())
        self.prints = Prints()
        job = SubmitJob(tenant="t", agent="helper", input="go")
        config = AgentConfig(instructions="Be careful.", tools=self.patterns)
        limits = e.Limits(max_steps=99, max_seconds=1e6, max_output_tokens=10)
        self.note(e.JobSubmitted, tenant="t", job=job, content_hash="")
        self.note(
            e.JobRouted,
            agent="helper",
            agent_version=1,
            config=config,
            route=ROUTE,
            limits=limits,
            candidates=e.Candidates(cards=(CARD, OTHER)),
        )

    def _pen(self, job: Job) -> Pen:
        log: Any = SimpleNamespace(tenant="t", job_id="j")
        return Pen(log, HEAD, job, clock=lambda: NOW + timedelta(seconds=self.wait_s * self.pen.job.seq))

    @property
    def job(self) -> Job:
        return self.pen.job

    def note(self, kind: type[e.Event], **payload: Any) -> None:
        self.events.append(self.pen.note(kind, **payload))

    def ask(self, *notes: NoteMessage) -> e.ModelRequested:
        """One model call as far as its intent."""
        before = len(self.pen._noted)
        note_news(self.pen, self.listed, lambda _: notes)
        repeated = self.job.model_failed is not None
        step, attempt = self.job.step + (not repeated), self.job.model_attempt + 1
        tools = offered(self.job, self.listed)
        request = MODELS.request(self.job, step=step, attempt=attempt, tools=tools)
        named = {"step": step, "attempt": attempt, "attempt_id": request.attempt_id}
        fields = compared(self.job, request, self.prints)
        self.pen.note(e.ModelRequested, **named, provider=request.card.provider, model=request.model, **fields)
        self.events += self.pen._noted[before:]
        self.prompts.append(assemble(self.job))
        assert self.job.asked is not None
        return self.job.asked

    def answer(self, *calls: ToolCall, text: str = "") -> None:
        message = AssistantMessage(text=text, tool_calls=calls)
        named = {"step": self.job.step, "attempt": 1, "attempt_id": "x"}
        done = {"usage": Usage(input=1), "cost_usd": None, "stop_reason": "end", "duration_ms": 1}
        self.note(e.ModelCompleted, **named, message=message, **done)

    def fail(self) -> None:
        named = {"step": self.job.step, "attempt": self.job.model_attempt, "attempt_id": "x"}
        self.note(e.ModelFailed, **named, error=Failure(code="overloaded", message="busy"), retryable=True)

    def finish(self, call: str, content: str = "found", *, failed: bool = False) -> None:
        named = {"step": self.job.step, "call": call, "tool": "a"}
        error = ToolError(code="tool_failed", message=content) if failed else None
        reply = ToolReply(status="failed" if failed else "success", content="" if failed else content, error=error)
        said = shown(self.job, "a", reply, step=self.job.step, call=call, tokens_max=300)
        self.note(e.ToolCompleted, **named, status=reply.status, **said)

    def restart(self) -> None:
        """Another process goes on with nothing but the log, as it was written."""
        self.pen = self._pen(fold(read_record(encode(self.events))))
        self.prints = Prints()
        self.note(e.JobClaimed, executor="x", epoch=self.job.epoch + 1, owner="1:1", attempt=1)


@dataclass(frozen=True)
class Step:
    """What happens between two answers of the model."""

    versions: tuple[int, ...]
    """Of the tools a … d: 0 is not listed."""
    notes: tuple[str, ...] = ()
    failures: int = 0
    calls: tuple[tuple[str, bool], ...] = ()
    """The content of each call's result, and whether it failed."""
    restart: bool = False


def play(talk: Talk, step: Step) -> None:
    talk.listed = tuple(tool(name, version) for name, version in zip("abcd", step.versions, strict=True) if version)
    said = [NoteMessage(label="CONTEXT UPDATE", text=text) for text in step.notes]
    talk.ask(*said)
    for _ in range(step.failures):
        talk.fail()
        talk.ask(*said)
    talk.answer(*(ToolCall(call=str(n), tool="a", arguments={"n": n}) for n in range(len(step.calls))), text="so")
    if step.restart:
        talk.restart()
    # In the reverse of the order in which they were asked for: the fold puts them right.
    for n, (content, failed) in reversed(list(enumerate(step.calls))):
        talk.finish(str(n), content, failed=failed)


steps = st.builds(
    Step,
    versions=st.tuples(*[st.integers(0, 2)] * 4),
    notes=st.lists(st.sampled_from(["one", "two", "three"]), max_size=2).map(tuple),
    failures=st.integers(0, 2),
    calls=st.lists(
        st.tuples(st.sampled_from(["ok", "long " * 600, "[" + "1," * 3_000 + "1]"]), st.booleans()), max_size=3
    ).map(tuple),
    restart=st.booleans(),
)


@settings(max_examples=150, deadline=None)
@given(history=st.lists(steps, min_size=2, max_size=8))
def test_every_prompt_begins_with_the_whole_of_the_one_before(history):
    talk = Talk()
    for step in history:
        play(talk, step)

    for before, after in pairwise(talk.prompts):
        assert (after.tools, after.system, after.cache_key) == (before.tools, before.system, before.cache_key)
        assert after.messages[: len(before.messages)] == before.messages
    asked = [event for event in talk.events if isinstance(event, e.ModelRequested)]
    assert {event.cache_break for event in asked} == {None}


@settings(max_examples=150, deadline=None)
@given(history=st.lists(steps, min_size=2, max_size=8))
def test_each_call_marks_the_place_that_the_answered_call_before_it_wrote(history):
    talk = Talk()
    for step in history:
        play(talk, step)

    for n, prompt in enumerate(talk.prompts):
        said = max((n for n, m in enumerate(prompt.messages) if isinstance(m, AssistantMessage)), default=None)
        assert len(prompt.breakpoints) <= 3
        assert prompt.breakpoints[-1] == len(prompt.messages) - 1
        if said is not None:
            written = [before.breakpoints[-1] for before in talk.prompts[:n]]
            assert said - 1 in written
            assert said - 1 in prompt.breakpoints


@settings(max_examples=100, deadline=None)
@given(history=st.lists(steps, min_size=2, max_size=6))
def test_a_prompt_is_the_same_from_the_log_alone(history):
    talk = Talk()
    for step in history:
        play(talk, step)
    talk.ask()

    again = fold(read_record(encode(talk.events)))

    assert assemble(again) == assemble(talk.job)
    assert Prints().segments(assemble(again)) == talk.prints.segments(assemble(talk.job))


def next_call(between: Callable[[Talk], None]) -> e.ModelRequested:
    talk = Talk()
    for _ in range(2):
        talk.ask()
        talk.answer(ToolCall(call="1", tool="a"))
        talk.finish("1")
    between(talk)
    return talk.ask()


def nothing(_: Talk) -> None:
    return None


def edited(talk: Talk) -> None:
    *others, last = talk.job.messages
    assert isinstance(last, ToolMessage)
    first = UserMessage(parts=(TextPart(text="went"),))
    talk.pen.job = replace(talk.job, messages=(first, *others[1:], last))


def copied(talk: Talk) -> None:
    talk.pen.job = replace(talk.job, messages=tuple(message.model_copy() for message in talk.job.messages))


def retooled(talk: Talk) -> None:
    talk.pen.job = replace(talk.job, tools=(tool("z"),))


def reworded(talk: Talk) -> None:
    assert talk.job.config
    config = talk.job.config.model_copy(update={"instructions": "It is 10:05. Be careful."})
    talk.pen.job = replace(talk.job, config=config)


def rerouted(talk: Talk) -> None:
    route = ROUTE.model_copy(update={"model": "n"})
    talk.note(e.JobRerouted, route=route, cause="escalation")


def compacted(talk: Talk) -> None:
    talk.note(e.ContextCompacted, note=NoteMessage(label="CONTEXT", text="much was said"), kept=0)


def waited(talk: Talk) -> None:
    talk.wait_s = 400
    talk.note(e.JobResumed)


@pytest.mark.parametrize(
    ("between", "cause"),
    [
        (nothing, None),
        (copied, None),
        (edited, "history_edited"),
        (retooled, "tools_changed"),
        (reworded, "system_changed"),
        (rerouted, "model_changed"),
        (compacted, "compaction"),
        (waited, "expired"),
    ],
)
def test_the_guard_names_what_broke_a_prefix(between, cause):
    assert next_call(between).cache_break == cause


def test_a_break_that_another_process_made_is_seen_by_the_next_one():
    def elsewhere(talk: Talk) -> None:
        talk.restart()
        edited(talk)

    assert next_call(elsewhere).cache_break == "history_edited"


def test_what_the_log_holds_of_a_prompt_does_not_grow_with_it():
    talk = Talk()
    sizes = []
    for _ in range(50):
        sizes.append(len(talk.ask().model_dump_json(include={"prefix"})))
        talk.answer(ToolCall(call="1", tool="a"))
        talk.finish("1")

    assert max(sizes[1:]) < sizes[0] + 20


def test_many_parallel_calls_do_not_lose_the_entry_of_the_call_before():
    calls = tuple(ToolCall(call=str(n), tool="a") for n in range(40))
    results = tuple(ToolMessage(call=str(n), tool="a", content="x") for n in range(40))
    messages = (USER, AssistantMessage(text="look"), USER, AssistantMessage(tool_calls=calls), *results)

    assert breakpoints(messages, at_most=3) == (0, 2, len(messages) - 1)


@pytest.mark.parametrize(("at_most", "expected"), [(0, ()), (1, (4,)), (2, (2, 4)), (3, (0, 2, 4))])
def test_a_provider_with_room_for_fewer_marks_gets_the_most_useful(at_most, expected):
    messages = (USER, AssistantMessage(text="a"), USER, AssistantMessage(text="b"), USER)

    assert breakpoints(messages, at_most=at_most) == expected


def test_a_first_call_marks_its_only_message():
    assert breakpoints((USER,), at_most=3) == (0,)


def test_jobs_of_one_agent_version_share_a_key_and_others_do_not():
    assert cache_key("t", "helper", 1) == cache_key("t", "helper", 1)
    assert len({cache_key("t", "helper", 1), cache_key("t", "helper", 2), cache_key("u", "helper", 1)}) == 3


def test_the_tools_of_a_job_are_those_of_its_first_call_and_two_of_our_own_sorted():
    assert [one.name for one in Talk().ask().tools or ()] == ["a", "b", RECALL, USE_TOOL]
    assert [one.name for one in Talk(patterns=("a", "b")).ask().tools or ()] == ["a", "b", RECALL]
    assert Talk(patterns=(), listed=()).ask().tools == ()
