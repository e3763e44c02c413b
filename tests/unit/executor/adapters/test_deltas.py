"""Pieces of a model's text as they are sent on: who comes in the midst of one can tell."""

from __future__ import annotations

from typing import Any

import pytest

from wayline.contracts.jobs import Delta
from wayline.executor.adapters import model_providers
from wayline.executor.adapters.model_providers import CallProgress, _Deltas
from wayline.testkit.jobs import job_with


class Heard:
    """A bus that keeps what is sent."""

    def __init__(self) -> None:
        self.deltas: list[Delta] = []

    async def send(self, delta: Any) -> None:
        self.deltas.append(delta)


async def test_each_piece_says_how_much_came_before_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(model_providers, "DELTA_S", 0.0)
    bus = Heard()
    deltas = _Deltas(bus, job_with(job_id="j", tenant="acme", step=2, attempt=1), CallProgress())  # type: ignore[arg-type]

    for text in ("One ", "two ", "three."):
        await deltas.add(text)
    await deltas.flush()

    told = "".join(one.text for one in bus.deltas)
    assert told == "One two three."
    assert all(told[one.offset :].startswith(one.text) for one in bus.deltas)
    assert [one.offset for one in bus.deltas] == sorted({one.offset for one in bus.deltas})
