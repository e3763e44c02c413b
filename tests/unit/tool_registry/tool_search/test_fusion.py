"""Rankings by words and by meaning become one."""

from wayline.contracts.tools import ToolDefinition
from wayline.tool_registry.tool_search import Entry, Match, ToolIndex, fuse

INDEX = ToolIndex(Entry(ToolDefinition(name=name)) for name in ("pay", "rate", "page", "clock"))
PAY, RATE, PAGE, CLOCK = range(4)
BY_WORDS = [Match(INDEX.tools[PAY], 9.0, PAY), Match(INDEX.tools[RATE], 8.1, RATE)]


def places(ranked: list[Match]) -> list[int]:
    return [match.at for match in ranked]


def test_without_meaning_the_ranking_of_the_words_stands():
    assert fuse(BY_WORDS, {}, INDEX) == BY_WORDS


def test_meaning_decides_between_tools_that_words_rank_alike():
    assert places(fuse(BY_WORDS, {PAY: 0.1, RATE: 0.6}, INDEX)) == [RATE, PAY]


def test_words_decide_where_vectors_understand_little():
    assert places(fuse(BY_WORDS, {PAY: 0.1, RATE: 0.15, PAGE: 0.2}, INDEX)) == [PAY, RATE, PAGE]


def test_a_tool_without_a_shared_word_is_found_by_meaning():
    assert places(fuse([], {PAGE: 0.3, CLOCK: 0.7, PAY: -0.4}, INDEX)) == [CLOCK, PAGE]


def test_words_count_by_the_best_tool_that_counts():
    by_words = [Match(INDEX.tools[CLOCK], 81.0, CLOCK), *BY_WORDS]

    assert places(fuse(by_words, {PAGE: 0.9, RATE: 0.1}, INDEX)) == [CLOCK, PAGE, RATE, PAY]
    assert places(fuse(by_words, {PAGE: 0.9, RATE: 0.1}, INDEX, best=9.0)) == [CLOCK, PAY, RATE, PAGE]
