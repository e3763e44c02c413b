"""What a search returns: tools that the asker lacks and may use; others that fit are named."""

from wayline.contracts.searched_tools import SearchTools, UnusableTool
from wayline.contracts.tools import ToolDefinition
from wayline.tool_registry.tool_search import Entry, Match, ToolIndex, choose, find_tools


def ranked(*scored: tuple[str, float]) -> list[Match]:
    return [Match(ToolDefinition(name=name), score) for name, score in scored]


def ask(**fields) -> SearchTools:
    return SearchTools(tenant="t", query="q", **fields)


def test_tools_that_are_loaded_or_not_allowed_are_named_alone():
    matches = ranked(("web__get", 9), ("a__have", 8), ("a__off", 7), ("a__new", 6), ("a__more", 5))

    found = choose(matches, ask(patterns=("a__*",), off=("a__off",), loaded=("a__have",)), searched=5)

    assert [(one.tool.name, one.score) for one in found.tools] == [("a__new", 6), ("a__more", 5)]
    assert (found.loaded, found.disabled, found.searched) == (("a__have",), ("web__get", "a__off"), 5)


def test_what_fits_worse_than_the_last_result_is_not_named():
    found = choose(ranked(("a", 9), ("b", 8), ("off", 7)), ask(max_results=2, off=("off",)), searched=3)

    assert ([one.tool.name for one in found.tools], found.disabled) == (["a", "b"], ())


def test_a_tool_far_below_the_best_score_is_left_out():
    found = choose(ranked(("a", 10), ("b", 1), ("c", 0.9)), ask(), searched=3)

    assert [one.tool.name for one in found.tools] == ["a", "b"]


def test_tools_that_fit_better_take_no_place_of_usable_ones():
    matches = ranked(
        *((f"crm{n:03}__bill", 29) for n in range(120)), ("a__have", 28), ("a__bill", 1.9), ("a__pay", 0.1)
    )

    found = choose(matches, ask(patterns=("a__*",), loaded=("a__have",)), searched=123)

    assert [one.tool.name for one in found.tools] == ["a__bill"]
    assert (found.loaded, found.disabled) == (("a__have",), ("crm000__bill", "crm001__bill", "crm002__bill"))


def test_a_usable_tools_words_count_beside_a_better_forbidden_one():
    names = ("crm__send_invoice_to_customer", "bank__send_bill", "bank__page")
    index = ToolIndex(Entry(ToolDefinition(name=name)) for name in names)
    similar = {index.tools.index(ToolDefinition(name="bank__page")): 0.9}
    asked = SearchTools(tenant="t", query="send an invoice to the customer", patterns=("bank__*",))

    found = find_tools(index, asked, similar, searched=3, unusable={})

    assert [one.tool.name for one in found.tools] == ["bank__send_bill", "bank__page"]
    assert found.disabled == ("crm__send_invoice_to_customer",)


def test_a_forbidden_tool_that_fits_far_worse_is_not_named():
    found = choose(ranked(("a", 10), ("off", 0.9), ("b", 0.8)), ask(off=("off",)), searched=3)

    assert ([one.tool.name for one in found.tools], found.disabled) == (["a"], ())


def test_a_tool_that_must_be_named_is_disabled_under_a_star():
    found = choose(ranked(("calculator", 3)), ask(), searched=1)

    assert (found.tools, found.disabled) == ((), ("calculator",))


def test_nothing_ranked_is_nothing_found():
    assert choose([], ask(), searched=4).model_dump(exclude_defaults=True) == {"searched": 4}


def test_a_forbidden_tool_is_named_with_what_allows_it():
    matches = ranked(("web_search", 9), ("a__off", 8), ("b__not", 7))

    off = ("web_search*", "a__o*")
    found = choose(matches, ask(patterns=("web_*", "a__*"), off=off), searched=3)

    assert [(one.name, one.why) for one in found.unusable] == [
        ("web_search", "the switch `web_search` is off"),
        ("a__off", "it is among the agent's `tools_off` (a__o*)"),
        ("b__not", "it is not among the agent's `tools`"),
    ]
    assert [
        part in one.how for part, one in zip(("web_search=on", "a__o*", "b__not"), found.unusable, strict=True)
    ] == [
        True,
        True,
        True,
    ]
    assert found.disabled == ("web_search", "a__off", "b__not")


def test_an_unusable_tool_is_named_and_takes_no_place():
    away = UnusableTool(name="a", why="its server is disabled", how="enable it")

    found = choose(ranked(("a", 9), ("b", 8)), ask(max_results=1), searched=1, unusable={"a": away})

    assert ([one.tool.name for one in found.tools], found.unusable, found.disabled) == (["b"], (away,), ())
