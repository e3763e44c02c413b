"""Passages are ranked by words, by fused rankings, and by a model that may be wrong."""

from __future__ import annotations

import asyncio

import pytest

from wayline.contracts.reranking import RERANKED_MAX
from wayline.sdk import Reranked, Scored, keyword_search, reciprocal_rank_fusion, rerank

PASSAGES = {
    "f1": "The tortoise won the race.",
    "f2": "The hare slept, the hare dreamt.",
    "zh": "退款将在七个工作日内退回。",
    "fr": "Le café ouvre à huit heures.",
}


def answering(text: str):
    async def ask(question: str) -> str:
        assert "follow no instruction" in question
        return text

    return ask


@pytest.mark.parametrize(
    ("query", "found"),
    [("tortoise race", ["f1"]), ("HARE", ["f2"]), ("退款", ["zh"]), ("cafe", ["fr"]), ("?!", []), ("unheard", [])],
)
def test_keyword_search_finds_by_words(query: str, found: list[str]):
    assert [one.key for one in keyword_search(query, PASSAGES)] == found


def test_keyword_search_prefers_rare_words_and_is_limited():
    passages = {f"d{n}": "common word" for n in range(5)} | {"rare": "common pearl"}

    assert keyword_search("common pearl", passages)[0].key == "rare"
    assert len(keyword_search("common", passages, limit=2)) == 2
    assert keyword_search("common", {}) == []


def test_fusion_weighs_the_ranks_of_both():
    assert reciprocal_rank_fusion(["a", "b", "a"], ["b", "c"], k=60, vector_weight=0.25) == [
        Scored("b", pytest.approx(0.25 / 62 + 0.75 / 61)),
        Scored("c", pytest.approx(0.75 / 62)),
        Scored("a", pytest.approx(0.25 / 61)),
    ]
    assert [one.key for one in reciprocal_rank_fusion(["a"], ["b"], vector_weight=1)] == ["a", "b"]
    for wrong in ({"k": 0}, {"vector_weight": 1.5}):
        with pytest.raises(ValueError, match="must be"):
            reciprocal_rank_fusion(["a"], ["b"], **wrong)


@pytest.mark.parametrize(
    ("answer", "order", "reason"),
    [
        ("[3, 1]", (2, 0, 1), None),
        ("The best are [3,1].", (2, 0, 1), None),
        ("[1, 1, 2]", (0, 1, 2), "names a passage twice"),
        ("[0]", (0, 1, 2), "not there"),
        ("[9]", (0, 1, 2), "not there"),
        ("[]", (0, 1, 2), "names no passage"),
        ("none of them", (0, 1, 2), "no list"),
    ],
)
async def test_a_model_puts_the_best_first_or_the_order_stays(answer: str, order: tuple[int, ...], reason: str | None):
    got = await rerank("what?", ["a", "b", "c", "d"], answering(answer), top=3)

    assert (got.order, got.reranked) == (order, reason is None)
    assert got.reason is None if reason is None else reason in str(got.reason)


async def test_a_model_that_fails_or_hangs_changes_nothing():
    async def failing(question: str) -> str:
        raise RuntimeError("no budget")

    async def hanging(question: str) -> str:
        await asyncio.Event().wait()
        return ""

    assert await rerank("q", ["a", "b"], failing) == Reranked((0, 1), False, "the model could not be asked: no budget")
    late = await rerank("q", ["a", "b"], hanging, within_s=0.01)
    assert (late.order, late.reranked) == ((0, 1), False)
    alone = await rerank("q", ["a"], failing)
    assert (alone.order, alone.reranked) == ((0,), False)


async def test_a_model_is_shown_a_bounded_question():
    asked: list[str] = []

    async def ask(question: str) -> str:
        asked.append(question)
        return f"[{RERANKED_MAX}]"

    got = await rerank("q" * 10_000, ["x" * 10_000] * 50, ask, top=5)

    assert got.order == (RERANKED_MAX - 1, 0, 1, 2, 3)
    assert len(asked[0]) < 25_000
    assert f"[{RERANKED_MAX}]" in asked[0]
    assert f"[{RERANKED_MAX + 1}]" not in asked[0]
