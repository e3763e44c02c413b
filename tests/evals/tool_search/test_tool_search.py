"""Tool search finds more of what people judged right than BM25, for a small part of the definition tokens."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .embedder import MODEL, python
from .measures import Found, choice, found_by_words, found_with_meaning, found_with_model, saved_shares
from .tool_sets import BEST_BM25, BEST_BM25_COMPLETE, CALLS, CUTS, load

SAVED_MIN = {20: 0.70, 200: 0.90, 500: 0.90}
"""By how many tools an agent has."""

TASKS_MIN = 100

Tell = Callable[[str], None]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", BEST_BM25)
def test_more_right_tools_are_found_than_by_bm25(name: str, tell: Tell):
    found = found_by_words(load(name))

    tell(f"{name}: recall {_rounded(found)}, BM25 {BEST_BM25[name]}")
    assert is_better(found, name)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", BEST_BM25)
def test_weak_vectors_leave_search_better_than_bm25(name: str, tell: Tell):
    found = found_with_meaning(load(name))

    tell(f"{name}: recall {_rounded(found)} with latent semantic analysis, BM25 {BEST_BM25[name]}")
    assert is_better(found, name)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", BEST_BM25)
def test_an_embedding_model_finds_more_than_words_alone(name: str, tell: Tell):
    if not python().exists():
        pytest.skip("the embedding model is not installed: make tool-search")
    words, both = found_by_words(load(name)), found_with_model(load(name))

    tell(f"{name}: recall {_rounded(both)} with {MODEL}, {_rounded(words)} by words")
    assert is_better(both, name)
    assert both.recall[1] > words.recall[1]


@pytest.mark.parametrize("size", SAVED_MIN)
@pytest.mark.parametrize("name", [*BEST_BM25, CALLS])
def test_deferring_saves_most_of_the_definition_tokens(name: str, size: int, tell: Tell):
    saved = saved_shares(name, size)

    tell(f"{name}, {size} tools: {min(saved):.0%} to {max(saved):.0%} of the definition tokens are saved")
    assert min(saved) >= SAVED_MIN[size]


@pytest.mark.parametrize("size", SAVED_MIN)
@pytest.mark.parametrize("name", BEST_BM25)
def test_a_script_picks_no_worse_with_search(name: str, size: int, tell: Tell):
    picked = choice(load(name), size)

    tell(f"{name}, {size} tools: the right one of all {picked.of_all:.1%}, with search {picked.with_search:.1%}")
    assert picked.tasks >= TASKS_MIN
    assert picked.with_search >= picked.of_all


def is_better(found: Found, name: str) -> bool:
    """Return whether a search finds more than BM25 at every cut, and more tasks' tools whole."""
    return found.complete > BEST_BM25_COMPLETE[name] and all(found.recall[cut] > BEST_BM25[name][cut] for cut in CUTS)


def _rounded(found: Found) -> dict[int, float]:
    return {cut: round(share, 3) for cut, share in found.recall.items()}
