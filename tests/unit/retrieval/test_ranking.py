"""Which words choose the candidates, and what each is worth."""

from math import log

import pytest

from wayline.retrieval.ranking import Term, Words, choose_words, quoted, rarity


def test_a_query_of_rare_words_ranks_whatever_has_any_of_them():
    chosen = choose_words([Term("tortoise", 3), Term("race", 5, times=2)], chunks=100, candidates=100)

    assert chosen == Words(
        any_of="'tortoise' | 'race'",
        all_of=None,
        terms=("'tortoise'", "'race'"),
        weights=(rarity(3, of=100), 2 * rarity(5, of=100)),
    )


def test_a_common_word_counts_and_chooses_no_candidates():
    chosen = choose_words([Term("system", 900), Term("tortoise", 3)], chunks=1_000, candidates=100)

    assert chosen is not None
    assert chosen.any_of == "'tortoise'"
    assert chosen.terms == ("'tortoise'", "'system'")


def test_where_every_word_is_common_all_of_them_are_asked_for_first():
    chosen = choose_words([Term("data", 900), Term("system", 800)], chunks=1_000, candidates=100)

    assert chosen is not None
    assert (chosen.all_of, chosen.any_of) == ("'system' & 'data'", "'system'")


def test_words_that_are_in_no_chunk_leave_nothing_to_search_for():
    assert choose_words([Term("unheard", 0)], chunks=10, candidates=100) is None
    assert choose_words([], chunks=10, candidates=100) is None


def test_rarity_is_that_of_bm25_and_never_negative():
    assert rarity(3, of=10) == pytest.approx(log(1 + 7.5 / 3.5))
    assert rarity(10, of=10) > 0
    assert rarity(12, of=10) > 0


def test_a_word_with_quotes_is_still_one_word():
    assert quoted("o'brien\\") == "'o''brien\\\\'"
