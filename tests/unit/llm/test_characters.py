"""Characters whose halves come apart are one character again, in the text, its pieces, and the arguments."""

from __future__ import annotations

import itertools

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wayline.llm import Finished, TextDelta
from wayline.llm.anthropic import Anthropic
from wayline.llm.characters import Joiner, joined
from wayline.llm.openai_chat import ChatCompletions

from .cards import card, request, user
from .provider import Provider, Reply

PARTY = "\U0001f389"


@given(st.text(max_size=20), st.data())
def test_text_cut_between_bytes_or_halves_is_joined(text, data):
    text = text.encode(errors="replace").decode()
    whole = text.encode()
    cuts = sorted(data.draw(st.sets(st.integers(0, len(whole)), max_size=5)))
    edges = [0, *cuts, len(whole)]
    pieces = [whole[a:b].decode(errors="surrogateescape") for a, b in itertools.pairwise(edges)]
    joiner = Joiner()

    said = "".join([*(joiner.add(piece) for piece in pieces), joiner.rest()])

    assert joined("".join(pieces)) == text
    assert said == text


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (("\ud83c", "\udf89"), PARTY),
        (("a\ud83c", "b"), "a\ufffdb"),
        (("\udf89",), "\ufffd"),
        (("x\ud83c",), "x\ufffd"),
    ],
)
def test_halves_join_or_are_replaced(pieces, text):
    joiner = Joiner()

    assert "".join([*map(joiner.add, pieces), joiner.rest()]) == joined("".join(pieces)) == text


def chat(*written: bytes) -> bytes:
    chunks = b"".join(b'data: {"choices":[{"index":0,"delta":{"content":"' + each + b'"}}]}\n\n' for each in written)
    usage = b'"usage":{"prompt_tokens":9,"completion_tokens":2}'
    return chunks + b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],' + usage + b"}\n\n"


def claude(*written: bytes) -> bytes:
    def event(**fields: object) -> bytes:
        return b"data: " + orjson.dumps(fields) + b"\n\n"

    deltas = (
        b'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"' + each + b'"}}\n\n'
        for each in written
    )
    return b"".join(
        (
            event(type="message_start", message={"usage": {"input_tokens": 9}}),
            event(type="content_block_start", index=0, content_block={"type": "text", "text": ""}),
            *deltas,
            event(type="message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 2}),
            event(type="message_stop"),
        )
    )


@pytest.mark.parametrize(("adapter", "write"), [(ChatCompletions, chat), (Anthropic, claude)])
@pytest.mark.parametrize(
    ("written", "text"),
    [
        ((b"go \\ud83c", b"\\udf89!"), f"go {PARTY}!"),
        ((b"go \xf0\x9f", b"\x8e\x89!"), f"go {PARTY}!"),
        ((b"go \\ud83c!",), "go \ufffd!"),
        ((b"go \xf0\x9f",), "go \ufffd"),
    ],
)
async def test_a_character_split_over_two_deltas_is_one(adapter, write, written, text):
    async with Provider(Reply([write(*written)])) as server:
        model = adapter(server.url)
        *pieces, finished = [piece async for piece in model.stream(request(user("hi"), model=card()))]
        await model.close()

    assert isinstance(finished, Finished)
    assert finished.message.text == text
    assert "".join(piece.text for piece in pieces if isinstance(piece, TextDelta)) == text
