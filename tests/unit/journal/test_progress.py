"""What a user interface shows of a job is derived from its events."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, get_args

import orjson
import pytest

from wayline.contracts import events as e
from wayline.contracts.agents import AgentConfig
from wayline.contracts.chat import AssistantMessage, ToolCall
from wayline.contracts.jobs import CallProgress, Delta, Failure, Route, SubmitJob, Waiting
from wayline.contracts.money import Usage
from wayline.contracts.progress import Progress, ProgressState
from wayline.contracts.tools import Effect, ToolError
from wayline.journal import ProgressReader, progress_after, read_export, with_progress

GOLDEN = Path(__file__).parents[1] / "executor" / "replay" / "golden"
AT = datetime(2026, 1, 1, tzinfo=UTC)
TRACE = e.SpanRef(trace_id="0" * 32, span_id="0" * 16)


class Story:
    """The events of a job, numbered."""

    def __init__(self) -> None:
        self.events: list[e.Event] = []
        job = SubmitJob(tenant="t", agent="a", input="why?")
        self.add(e.JobSubmitted, tenant="t", job=job, content_hash="c")
        route = Route(provider="p", model="m", tier="standard", reason="r")
        limits = e.Limits(max_steps=4, max_seconds=60, max_output_tokens=9)
        self.add(e.JobRouted, agent="a", agent_version=1, config=AgentConfig(), route=route, limits=limits)

    def add(self, kind: type[e.Event], **fields: Any) -> Story:
        self.events.append(kind(job_id="j", seq=len(self.events) + 1, at=AT, trace=TRACE, **fields))
        return self

    def model(self, step: int, *tools: str) -> Story:
        named = {"step": step, "attempt": 1, "attempt_id": "x"}
        calls = tuple(ToolCall(call=str(n), tool=tool) for n, tool in enumerate(tools, 1))
        self.add(e.ModelRequested, **named, provider="p", model="m")
        done = {"message": AssistantMessage(text="hm", tool_calls=calls), "usage": Usage(), "stop_reason": "end"}
        return self.add(e.ModelCompleted, **named, **done, cost_usd=Decimal(0), duration_ms=1)

    def asks(self, step: int, call: str, tool: str, **arguments: Any) -> Story:
        key = f"{step}/{call}"
        return self.add(
            e.ToolRequested, step=step, call=call, tool=tool, arguments=arguments, effect=Effect.READ, key=key
        )

    def gets(self, step: int, call: str, tool: str, content: str = "", error: str | None = None) -> Story:
        why = ToolError(code="tool_failed", message=error) if error else None
        status = "failed" if error else "success"
        return self.add(e.ToolCompleted, step=step, call=call, tool=tool, status=status, content=content, error=why)

    def parks(self) -> Story:
        return self.add(e.JobParked, waiting=Waiting(why="approval", wait_id="w"), signals_seen=0)

    @property
    def progress(self) -> list[Progress]:
        return progress_of(self.events)


def progress_of(events: list[e.Event]) -> list[Progress]:
    reader = ProgressReader()
    return [made for event in events for made in reader.read(event)]


def searched() -> Story:
    story = Story().model(1, "web_search")
    story.asks(1, "1", "web_search", query="tides").gets(1, "1", "web_search", '{"results": [1, 2]}')
    return story.model(2).add(e.JobCompleted, answer="because")


def test_states_follow_each_other_one_at_a_time():
    states = [(made.state, made.phase, made.iteration) for made in searched().progress]

    assert states == [
        ("analyzing", "started", 0),
        ("analyzing", "completed", 0),
        ("reasoning", "started", 1),
        ("reasoning", "completed", 1),
        ("searching_web", "started", 1),
        ("searching_web", "completed", 1),
        ("observing_results", "started", 1),
        ("observing_results", "completed", 1),
        ("reasoning", "started", 2),
        ("reasoning", "completed", 2),
        ("generating_response", "started", 2),
        ("generating_response", "completed", 2),
    ]


def test_a_finished_step_says_what_its_calls_came_to():
    story = Story().model(1, "web_search", "pay")
    story.asks(1, "1", "web_search", query="tides").asks(1, "2", "pay")
    story.gets(1, "2", "pay", error="no money").gets(1, "1", "web_search", "[1, 2]")

    began, finished = (made for made in story.progress if made.state == "executing_tools")
    tools = ("web_search", "pay")
    assert began == Progress(
        state="executing_tools", phase="started", message="Using tools", iteration=1, of=4, tools=tools, total=2
    )
    assert finished == began.model_copy(
        update={"phase": "completed", "message": "2 found for “tides”; pay failed: no money", "ok": 1}
    )


def test_every_state_that_begins_is_finished():
    failed = Story().model(1, "a", "b").asks(1, "1", "a").add(e.JobFailed, error=Failure(code="x", message="y"))
    for story in (searched(), failed):
        begun = [made for made in story.progress if made.phase == "started"]
        ended = [made for made in story.progress if made.phase == "completed"]
        assert [made.state for made in begun] == [made.state for made in ended]


def test_calls_of_a_program_are_no_calls_of_its_step():
    events = read_export(orjson.loads((GOLDEN / "code.json").read_bytes()))
    program = next(event.seq for event in events if isinstance(event, e.CodeCompleted))

    while_it_runs = progress_of(events[: program - 1])
    observing = [made for made in progress_of(events) if made.state == "observing_results"]

    assert [(made.state, made.phase) for made in while_it_runs[-2:]] == [
        ("reasoning", "completed"),
        ("executing_tools", "started"),
    ]
    assert [(made.ok, made.total, made.tools) for made in observing] == [(1, 1, ("run_code",))] * 2


def test_a_resumed_job_begins_its_phase_again():
    story = Story().model(1, "look", "pay").asks(1, "1", "look").gets(1, "1", "look").parks().add(e.JobResumed)
    story.asks(1, "2", "pay").gets(1, "2", "pay")

    told = [(made.state, made.phase, made.ok, made.total) for made in story.progress[4:]]

    assert told == [
        ("executing_tools", "started", None, 2),
        ("executing_tools", "completed", None, 2),
        ("executing_tools", "started", None, 2),
        ("executing_tools", "completed", 2, 2),
        ("observing_results", "started", 2, 2),
    ]


@pytest.mark.parametrize("log", sorted(GOLDEN.glob("*.json*")), ids=lambda path: path.stem)
def test_what_a_job_does_is_the_last_progress_not_over(log: Path):
    events = read_export(orjson.loads(log.read_bytes()))

    for end in range(1, len(events) + 1):
        told = progress_of(events[:end])
        under_way = told[-1] if told and told[-1].phase == "started" else None
        assert progress_after(events[:end]) == under_way


STATES_OF_TOOLS: dict[ProgressState, str] = {
    "executing_tools": "pay",
    "searching_web": "web_search",
    "fetching_content": "web_fetch",
    "retrieving_memory": "search_memories",
    "saving_memory": "save_memory",
}


@pytest.mark.parametrize(("state", "tool"), STATES_OF_TOOLS.items())
def test_a_step_is_shown_by_what_its_tool_is_for(state, tool):
    story = Story().model(1, tool).asks(1, "1", tool).gets(1, "1", tool)

    assert [(made.state, made.phase, made.tools) for made in story.progress[4:]] == [
        (state, "started", (tool,)),
        (state, "completed", (tool,)),
        ("observing_results", "started", (tool,)),
    ]


def test_every_state_is_made_by_some_job():
    story = Story()
    for step, tool in enumerate(STATES_OF_TOOLS.values(), 1):
        story.model(step, tool).asks(step, "1", tool).gets(step, "1", tool)
    story.model(6).add(e.JobCompleted, answer="done")

    assert {made.state for made in story.progress if made.phase == "started"} == set(get_args(ProgressState))


async def test_progress_is_told_only_of_events_after_the_last_id():
    story = searched()

    async def news() -> AsyncGenerator[e.Event | None, None]:
        for event in story.events:
            yield event
        yield None

    seen = len(story.events) - 2
    told = [item async for item in with_progress(news(), after_seq=seen)]

    assert [item for item in told if not isinstance(item, Progress)] == [*story.events[seen:], None]
    first = told[0]
    assert isinstance(first, Progress) and (first.state, first.phase, first.of) == ("reasoning", "completed", 4)


def told(**more: Any) -> Delta:
    said = {"call": "1", "tool": "bank__move", "progress": 3, **more}
    return Delta(tenant="t", job_id="j", step=1, attempt=0, text="", tool=CallProgress(**said))


async def heard(story: Story, *deltas: Delta) -> list[Progress]:
    """Return what is shown of tools that tell how far they are after a story."""

    async def news() -> AsyncGenerator[e.Event | Delta, None]:
        for item in (*story.events, *deltas):
            yield item

    shown = [item async for item in with_progress(news())]
    assert not [item for item in shown if isinstance(item, Delta)]
    return [item for item in shown if isinstance(item, Progress) and item.phase == "running"]


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ({"total": 10, "message": "three moved"}, "bank__move: three moved (3 of 10)"),
        ({"total": None, "message": ""}, "bank__move: 3"),
    ],
)
async def test_a_tool_that_tells_how_far_it_is_is_shown(said: dict[str, Any], shown: str):
    [running] = await heard(Story().model(1, "bank__move").asks(1, "1", "bank__move"), told(**said))

    assert (running.state, running.message, running.tools) == ("executing_tools", shown, ("bank__move",))


async def test_a_tool_whose_step_is_over_is_not_heard():
    story = Story().model(1, "bank__move").asks(1, "1", "bank__move").gets(1, "1", "bank__move")

    assert await heard(story, told(total=10)) == []
    assert await heard(story.model(2, "bank__move"), told(total=10)) == []
