"""A stream that breaks off is let go at once: nobody waits for Python's cycle collector to find it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from wayline.llm import ModelError
from wayline.llm.characters import Joiner
from wayline.llm.transport.sdk import _pieces  # pyright: ignore[reportPrivateUsage]
from wayline.testkit.cycles import ours, uncollected, whose


class Reply:
    """Breaks off after one word."""

    seen = None
    over = False

    def take(self, event: dict[str, Any]) -> str:
        if "error" in event:
            raise ModelError("overloaded", "too many", retryable=True)
        return event["text"]


def test_an_error_within_a_stream_leaves_no_cycles():
    told: list[Any] = []

    def read() -> None:
        with pytest.raises(ModelError):
            told.extend(_pieces(Reply(), [{"text": "It is"}, {"error": {}}], Joiner()))  # pyright: ignore[reportArgumentType]

    read()
    with uncollected() as found:
        read()

    assert Counter(filter(ours, map(whose, found))) == {}
