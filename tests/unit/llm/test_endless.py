"""A provider that never stops talking is left: it fills neither the memory nor the time of a job."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from wayline.llm import Model, ModelError
from wayline.llm.anthropic import Anthropic
from wayline.llm.openai import OpenAI
from wayline.llm.openai_chat import ChatCompletions
from wayline.llm.transport import frames

from .cards import card, request, user
from .provider import Provider, Reply

JSON = {"content-type": "application/json"}
PIECE = b"x" * 65_536
PIECES = 2_048
"""So many are endless enough."""


async def failure(adapter: Callable[[str], Model], piece: bytes, **reply: Any) -> ModelError:
    """How a call ends that is never told the end: before the provider has said it all."""
    talk = itertools.repeat(piece, PIECES)
    async with Provider(Reply(talk, **reply)) as provider:
        model = adapter(provider.url)
        with pytest.raises(ModelError) as caught:
            async for _ in model.stream(request(user("hi"), model=card())):
                pass
        await model.close()
    assert next(talk, None), "all of it was read"
    return caught.value


@pytest.mark.parametrize("adapter", [Anthropic, OpenAI, ChatCompletions])
@pytest.mark.parametrize("status", [300, 500])
async def test_of_an_error_without_an_end_the_beginning_is_read(adapter, status):
    error = await failure(adapter, PIECE, status=status, headers=dict(JSON))

    assert (error.code, error.billable) == ("server_error", False)
    assert str(error).startswith(f"{status}: xxx")


@pytest.mark.parametrize("adapter", [Anthropic, OpenAI, ChatCompletions])
@pytest.mark.parametrize(
    ("limit", "text"),
    [
        ("FRAME_MAX_BYTES", PIECE),
        ("ANSWER_MAX_BYTES", b": " + PIECE + b"\n\n"),
    ],
    ids=["an event", "an answer"],
)
async def test_what_has_no_end_is_no_answer(monkeypatch: pytest.MonkeyPatch, adapter, limit, text):
    monkeypatch.setattr(frames, limit, 10 * len(PIECE))
    error = await failure(adapter, text)

    assert (error.code, error.retryable, error.billable) == ("unreadable", False, True)
    assert f"more than {10 * len(PIECE)} bytes" in str(error)


async def test_a_body_in_one_piece_has_an_end_too(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(frames, "ANSWER_MAX_BYTES", 10 * len(PIECE))
    error = await failure(ChatCompletions, PIECE, headers=dict(JSON))

    assert (error.code, error.retryable, error.billable) == ("unreadable", False, True)
