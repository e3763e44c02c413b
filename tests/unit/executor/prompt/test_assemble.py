"""Prompts only grow: whatever happens to a job, each one begins with the whole of the one before."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wayline.contracts import events as e
from wayline.contracts.agents import AgentConfig
from wayline.contracts.chat import (
    AssistantMessage,
    Attachment,
    FilePart,
    ImagePart,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from wayline.contracts.models import CacheRules
from wayline.contracts.tools import RECALL, USE_TOOL
from wayline.executor.prompt.assemble import PromptHashes, assemble, breakpoints, cache_key
from wayline.journal import encode, fold, read_record
from wayline.testkit.walks import examples

from ..logs import Log, card
from ..talk import Talk, play, straight

USER = UserMessage(parts=(TextPart(text="go"),))


@settings(max_examples=examples(150), deadline=None)
@given(history=st.lists(straight, min_size=2, max_size=8))
def test_every_prompt_begins_with_the_whole_of_the_one_before(history):
    talk = Talk()
    for step in history:
        play(talk, step)

    for before, after in pairwise(talk.prompts):
        assert (after.tools, after.system, after.cache_key) == (before.tools, before.system, before.cache_key)
        assert after.messages[: len(before.messages)] == before.messages
    asked = [event for event in talk.events if isinstance(event, e.ModelRequested)]
    assert {event.cache_break for event in asked} == {None}


@settings(max_examples=examples(150), deadline=None)
@given(history=st.lists(straight, min_size=2, max_size=8))
def test_each_call_marks_the_breakpoint_the_previous_call_wrote(history):
    talk = Talk()
    for step in history:
        play(talk, step)

    for n, prompt in enumerate(talk.prompts):
        last_answer = max((n for n, m in enumerate(prompt.messages) if isinstance(m, AssistantMessage)), default=None)
        assert len(prompt.breakpoints) <= 3
        assert prompt.breakpoints[-1] == len(prompt.messages) - 1
        if last_answer is not None:
            written = [before.breakpoints[-1] for before in talk.prompts[:n]]
            assert last_answer - 1 in written
            assert last_answer - 1 in prompt.breakpoints


@settings(max_examples=examples(100), deadline=None)
@given(history=st.lists(straight, min_size=2, max_size=6))
def test_a_prompt_is_the_same_from_the_log_alone(history):
    talk = Talk()
    for step in history:
        play(talk, step)
    talk.ask()

    again = fold(read_record(encode(talk.events)))

    assert assemble(again) == assemble(talk.job)
    assert PromptHashes().segments(assemble(again)) == talk.hashes.segments(assemble(talk.job))


def test_the_logged_prefix_does_not_grow_with_the_prompt():
    talk = Talk()
    sizes = []
    for _ in range(50):
        sizes.append(len(talk.ask().model_dump_json(include={"prefix"})))
        talk.answer(ToolCall(call="1", tool="a"))
        talk.finish("1")

    assert max(sizes[1:]) < sizes[0] + 20


def test_many_parallel_calls_keep_the_previous_calls_breakpoint():
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


def test_pinned_documents_come_first_and_are_always_marked():
    pinned = AgentConfig(pinned=(FilePart(document_id="rules"), ImagePart(document_id="map")))
    marking = card("acme/primary", cache=CacheRules(kind="breakpoints", breakpoints_max=4))
    talk = Log(config=pinned, cards=(marking,), attachments=(attached("rules"), attached("map")))

    first = assemble(talk.job)
    talk.ask().answer("well")
    later = assemble(talk.job)

    assert first.messages == (UserMessage(parts=pinned.pinned), *talk.job.conversation.messages[:1])
    assert first.breakpoints == (0, 1)
    assert later.messages[:2] == first.messages and later.messages[0] is first.messages[0]
    assert breakpoints((*later.messages, USER), at_most=3, pinned=True) == (0, 1, 3)


def test_other_bytes_under_the_same_id_are_another_prompt():
    config = AgentConfig(pinned=(FilePart(document_id="rules"),))

    jobs = [Log(config=config, attachments=(attached("rules", digest),)).job for digest in ("a", "b", "a")]

    one, other, again = ([part.hash for part in PromptHashes().segments(assemble(job))] for job in jobs)
    assert one == again and one[:2] == other[:2] and one[2] != other[2]


def attached(document_id: str, digest: str = "a") -> Attachment:
    return Attachment(
        document_id=document_id,
        name=document_id,
        media_type="text/plain",
        sha256=digest * 64,
        size_bytes=4,
        text_bytes=4,
    )


def test_only_jobs_of_one_agent_version_share_a_cache_key():
    assert cache_key("t", "helper", 1) == cache_key("t", "helper", 1)
    assert len({cache_key("t", "helper", 1), cache_key("t", "helper", 2), cache_key("u", "helper", 1)}) == 3


def test_a_jobs_tools_are_its_first_calls_plus_builtins_sorted():
    assert [one.name for one in Talk().ask().tools or ()] == ["a", "b", RECALL, USE_TOOL]
    assert [one.name for one in Talk(patterns=("a", "b")).ask().tools or ()] == ["a", "b", RECALL]
    assert Talk(patterns=(), listed=()).ask().tools == ()
