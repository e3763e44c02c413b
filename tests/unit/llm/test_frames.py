"""Frames come out of a stream whole, however the socket cut them, and none is longer than memory can bear."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wayline.llm import ModelError
from wayline.llm.transport import frames as module
from wayline.llm.transport.frames import EVENT_END, LINE_END, Frames


def read(*chunks: bytes) -> list[bytes]:
    frames = Frames(LINE_END)
    return [*(line for chunk in chunks for line in frames.feed(chunk)), frames.rest]


@given(
    st.lists(st.binary(max_size=20).map(lambda b: b.replace(b"\n", b"").replace(b"\r", b"")), max_size=8),
    st.sampled_from([b"\n", b"\r\n"]),
    st.lists(st.integers(0, 200)),
)
def test_any_cut_gives_the_same_lines(lines: list[bytes], end: bytes, cuts: list[int]):
    text = b"".join(line + end for line in lines)
    edges = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]

    assert read(*(text[start:stop] for start, stop in pairwise(edges))) == [*lines, b""]


def test_a_last_line_without_an_end_is_the_rest():
    assert read(b"one\nt", b"wo") == [b"one", b"two"]


@pytest.mark.parametrize(
    ("limit", "chunks"),
    [("FRAME_MAX_BYTES", [b"x" * 6] * 2), ("ANSWER_MAX_BYTES", [b"x\n" * 3] * 2)],
    ids=["a line without an end", "lines without an end"],
)
def test_a_stream_without_an_end_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch, limit, chunks):
    monkeypatch.setattr(module, limit, 10)

    with pytest.raises(ModelError, match="more than 10 bytes") as caught:
        read(*chunks)
    assert (caught.value.code, caught.value.retryable, caught.value.billable) == ("unreadable", False, True)


@given(st.lists(st.sampled_from([b"\n", b"\r", b"\r\n", b"a", b"\n\n", b""]), max_size=40), st.integers(1, 5))
def test_any_cut_gives_the_same_events(parts: list[bytes], size: int):
    text = b"".join(parts)
    whole = Frames(EVENT_END)
    cut = Frames(EVENT_END)

    events = [one for start in range(0, len(text), size) for one in cut.feed(text[start : start + size])]

    assert (events, cut.rest) == (whole.feed(text), whole.rest)


def test_a_long_event_in_tiny_pieces_comes_out_whole():
    """To copy what has come with each piece would be a terabyte here, and never end."""
    frames, pieces = Frames(EVENT_END), 150_000
    for _ in range(pieces):
        assert frames.feed(b"x" * 100) == []

    assert frames.feed(b"\n\n") == [b"x" * 100 * pieces]
