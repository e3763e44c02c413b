"""The prefix guard: every break has its cause, and nothing else is called one."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import REGISTRY

from wayline.contracts import events as e
from wayline.contracts.chat import NoteMessage, TextPart, ToolCall, ToolMessage, UserMessage
from wayline.testkit.jobs import job_with
from wayline.testkit.walks import examples

from ..talk import ROUTE, Talk, play, tool, turning


@settings(max_examples=examples(150), deadline=None)
@given(history=st.lists(turning, min_size=2, max_size=8))
def test_a_break_is_named_exactly_where_a_prompt_diverges(history):
    talk = Talk()
    for step in history:
        play(talk, step)

    asked = [event for event in talk.events if isinstance(event, e.ModelRequested)]
    for (was, before), (event, after) in pairwise(zip(asked, talk.prompts, strict=True)):
        grew = after.messages[: len(before.messages)] == before.messages
        expected = "model_changed" if event.model != was.model else None if grew else "compaction"
        assert event.cache_break == expected
        assert (after.tools, after.system) == (before.tools, before.system)


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
    *others, last = talk.job.conversation.messages
    assert isinstance(last, ToolMessage)
    first = UserMessage(parts=(TextPart(text="went"),))
    talk.writer.job = job_with(talk.job, messages=(first, *others[1:], last))


def copied(talk: Talk) -> None:
    talk.writer.job = job_with(
        talk.job, messages=tuple(message.model_copy() for message in talk.job.conversation.messages)
    )


def retooled(talk: Talk) -> None:
    talk.writer.job = job_with(talk.job, offered=(tool("z"),))


def reworded(talk: Talk) -> None:
    assert talk.job.routing.config
    config = talk.job.routing.config.model_copy(update={"instructions": "It is 10:05. Be careful."})
    talk.writer.job = job_with(talk.job, config=config)


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


def test_only_breaks_are_counted_each_under_its_cause():
    def breaks(cause: str) -> float:
        return REGISTRY.get_sample_value("wayline_cache_breaks_total", {"cause": cause}) or 0.0

    causes = get_args(e.CacheBreak)
    before = [breaks(cause) for cause in causes]
    next_call(nothing)
    next_call(edited)

    counted = {cause: breaks(cause) - was for cause, was in zip(causes, before, strict=True)}
    assert counted == {cause: cause == "history_edited" for cause in causes}


def test_another_processs_break_is_seen_by_the_next_call():
    def elsewhere(talk: Talk) -> None:
        talk.restart()
        edited(talk)

    assert next_call(elsewhere).cache_break == "history_edited"
