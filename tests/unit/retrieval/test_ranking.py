"""Which words choose the candidates, and what each is worth."""

from math import log

import pytest

from wayline.retrieval.search.ranking import (
    IDENTIFIER_SIGN,
    IDENTIFIER_WEIGHT,
    TERMS_MAX,
    Term,
    Words,
    choose_share,
    choose_words,
    coverage,
    quoted,
    rarity,
    weight,
)


def test_a_query_of_rare_words_ranks_whatever_has_any_of_them():
    chosen = choose_words([Term("tortoise", 3), Term("race", 5, times=2)], chunks=100, candidates=100)

    assert chosen == Words(
        any_of="'tortoise' | 'race'",
        all_of=None,
        terms=("'tortoise'", "'race'"),
        weights=(rarity(3, of=100), 2 * rarity(5, of=100)),
        words=("tortoise", "race"),
        rare="'tortoise' | 'race'",
    )


def test_a_common_word_counts_and_chooses_no_candidates():
    chosen = choose_words([Term("system", 900), Term("tortoise", 3)], chunks=1_000, candidates=100)

    assert chosen is not None
    assert chosen.any_of == "'tortoise'"
    assert chosen.terms == ("'tortoise'", "'system'")


def test_common_words_alone_are_all_required_first():
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


def test_of_a_long_query_the_words_that_weigh_most_count():
    rare = [Term(f"once{n}", 3) for n in range(TERMS_MAX)]

    chosen = choose_words([*rare, Term("often", 5, times=9)], chunks=10_000, candidates=100)

    assert chosen is not None
    assert len(chosen.terms) == TERMS_MAX
    assert "'often'" in chosen.terms


def test_a_whole_identifier_weighs_more_than_a_word_as_rare():
    word, whole = Term("inv", 3), Term(f"{IDENTIFIER_SIGN}inv{IDENTIFIER_SIGN}7", 3)

    assert weight(whole, chunks=10) == IDENTIFIER_WEIGHT * weight(word, chunks=10)


@pytest.mark.parametrize(
    "found, share",
    [
        ([Term("race", 5), Term("horse", 3)], 0.1),
        ([Term("race", 5), Term("hroes", 0)], 0.4),
        ([Term("race", 1), Term("horse", 2), Term("hroes", 0)], 0.1),
        ([Term("reac", 0), Term("hroes", 0)], 1.0),
        ([Term("inv", 5), Term("7", 4), Term(f"{IDENTIFIER_SIGN}inv{IDENTIFIER_SIGN}7", 0)], 0.1),
        ([], 1.0),
    ],
)
def test_vectors_are_worth_more_where_passages_do_not_know_the_words(found: list[Term], share: float):
    assert choose_share(found, chunks=10, known=0.1, unknown=0.4) == share


def test_coverage_weighs_words_by_rarity_and_not_those_that_ask():
    asked = [Term("capit", 20), Term("mongolia", 0), Term("tell", 0), Term(f"{IDENTIFIER_SIGN}a{IDENTIFIER_SIGN}1", 0)]

    common, rare = rarity(20, of=100), rarity(0, of=100)
    assert coverage(asked, ["'capit'"], chunks=100) == pytest.approx(common / (common + rare))
    assert coverage([Term("tell", 3)], ["'tell'"], chunks=100) is None


def test_in_a_small_corpus_a_missing_word_outweighs_no_found_ones():
    asked = [Term("leas", 1), Term("renew", 1), Term("hourly", 0)]

    assert (coverage(asked, ["'leas'", "'renew'"], chunks=1) or 0) > 0.55


def test_forms_of_one_word_are_covered_together():
    asked = [Term("haus", 4, place=1), Term("house", 0, place=1), Term("rent", 6, place=2)]

    assert coverage(asked, ["'haus'", "'rent'"], chunks=100) == 1
    assert choose_share(asked, chunks=100, known=0.1, unknown=0.4) == 0.1
