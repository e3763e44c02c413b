"""Events out of a stream's bytes."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wayline.llm import ModelError
from wayline.llm.transport.frames import EVENT_END, Frames
from wayline.llm.transport.server_sent_events import events, last_events

STREAM = (
    b": a comment\n"
    b'event: one\ndata: {"a": "\xc3\xa9"}\n\n'
    b'data: {"type": "two",\ndata:  "b": 1}\n\n'
    b"event: nothing\n\n"
    b'event: three\r\nid: 7\r\ndata:{"type": "own"}\r\n\r\n'
    b"data: [1]\n\ndata: [DONE]\n\n"
)
SAID = [{"a": "é", "type": "one"}, {"type": "two", "b": 1}, {"type": "own"}]


def read(*chunks: bytes) -> list[dict]:
    frames = Frames(EVENT_END)
    found = [one for chunk in chunks for frame in frames.feed(chunk) for one in events(frame)]
    return [each for each in (*found, *last_events(frames.rest)) if each]


@given(st.sets(st.integers(0, len(STREAM))))
def test_however_the_bytes_are_split_the_events_are_the_same(cuts):
    edges = sorted({0, len(STREAM), *cuts})
    assert read(*(STREAM[a:b] for a, b in itertools.pairwise(edges))) == SAID


def test_an_unterminated_last_event_counts_only_when_whole():
    assert read(b'data: {"a": 1}\n') == [{"a": 1, "type": ""}]
    assert read(b'data: {"a": 1') == []


def test_a_broken_object_is_retryable_and_billable():
    with pytest.raises(ModelError) as caught:
        read(b'data: {"oops\n\n')

    assert (caught.value.code, caught.value.retryable, caught.value.billable) == ("unreadable", True, True)


@pytest.mark.parametrize(
    "frame", [b"data: : keepalive", b"data: ping", b"data: null", b"data: [1]", b'data: "x"', b": comment", b"data:"]
)
def test_data_that_is_no_object_says_nothing(frame):
    assert read(frame + b"\n\n", b'data: {"a": 1}\n\n') == [{"a": 1, "type": ""}]


def test_an_object_may_stand_in_several_lines_of_data():
    assert read(b'data: {\ndata: "a": 1\ndata: }\n\n') == [{"a": 1, "type": ""}]


def test_integers_keep_their_digits():
    assert read(b'data: {"a": 123456789012345678901234}\n\n') == [{"a": 123456789012345678901234, "type": ""}]


@pytest.mark.parametrize(("end", "found"), [(b"", 0), (b'data: {"a": 1}\ndata: {"b": 2}\n\n', 2)], ids=["cut", "whole"])
def test_each_of_very_many_lines_without_data_is_looked_at_once(end: bytes, found: int):
    assert len(read(b"event: x\n" * 200_000 + end)) == found
