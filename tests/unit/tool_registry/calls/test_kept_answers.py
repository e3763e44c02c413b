"""What a registry remembers of calls is bounded, and one tenant takes nothing of another's."""

from __future__ import annotations

import pytest

from wayline.contracts.tools import ToolReply
from wayline.tool_registry.calls import kept_answers
from wayline.tool_registry.calls.kept_answers import (
    CANCELLED_MAX,
    CANCELLED_PER_TENANT_MAX,
    KEPT_MAX_BYTES,
    KEPT_PER_TENANT_MAX_BYTES,
    CancelledKeys,
    KeptAnswers,
)

LARGE = ToolReply(status="success", content="x" * 4_000_000)


async def test_large_answers_that_nobody_takes_are_bounded():
    kept, held = KeptAnswers(), dict[str, ToolReply]()
    for number in range(100):
        held[f"{number}"] = LARGE
        kept.keep("greedy", LARGE, forget=lambda key=f"{number}": held.pop(key))

    assert 0 < len(held) * 4_000_000 <= KEPT_PER_TENANT_MAX_BYTES
    assert "99" in held

    for number in range(100):
        held[f"{number}"] = LARGE
        kept.keep(f"t{number}", LARGE, forget=lambda key=f"{number}": held.pop(key))
    assert 0 < len(held) * 4_000_000 <= KEPT_MAX_BYTES


async def test_an_answer_is_forgotten_after_a_while(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(kept_answers, "KEPT_S", 0)
    kept, forgotten = KeptAnswers(), kept_answers.asyncio.Event()

    kept.keep("t", LARGE, forget=forgotten.set)

    async with kept_answers.asyncio.timeout(10):
        await forgotten.wait()


def test_a_tenant_that_cancels_much_makes_no_other_cancel_forgotten():
    cancelled = CancelledKeys()
    cancelled.add("quiet/j/1/1")

    for number in range(CANCELLED_MAX):
        cancelled.add(f"greedy/j/1/{number}")

    assert "quiet/j/1/1" in cancelled
    assert f"greedy/j/1/{CANCELLED_MAX - 1}" in cancelled
    assert "greedy/j/1/0" not in cancelled


def test_cancelled_keys_of_all_tenants_are_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(kept_answers, "CANCELLED_MAX", 2 * CANCELLED_PER_TENANT_MAX)
    cancelled = CancelledKeys()
    keys = [f"t{number}/j/1/{call}" for number in range(30) for call in range(100)]

    for key in keys:
        cancelled.add(key)

    assert sum(key in cancelled for key in keys) == 2 * CANCELLED_PER_TENANT_MAX
    assert keys[-1] in cancelled
