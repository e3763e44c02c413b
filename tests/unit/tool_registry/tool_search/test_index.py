"""Tools are found by the words of their names, descriptions, parameters and servers."""

import pytest

from wayline.contracts.tools import ToolDefinition
from wayline.tool_registry.tool_search import Entry, ToolIndex
from wayline.tool_registry.tool_search.tool_words import stem, words


def tool(name: str, description: str = "", **parameters: str) -> ToolDefinition:
    properties = {name: {"type": "string", "description": about} for name, about in parameters.items()}
    return ToolDefinition(name=name, description=description, input_schema={"properties": properties})


TOOLS = (
    tool("bank__getExchangeRate", "Tell what one currency is worth in another.", currency="Such as EUR."),
    tool("bank__pay", "Send money to an account.", iban="The account that gets it.", amount="How much."),
    tool("mail__send_message", "Send an e-mail to somebody.", recipient="Whom.", subject="A line."),
    tool("weather__forecast", "Tell tomorrow's weather of a place.", place="A city."),
    tool("crm__delete_customer", "Remove a customer and all of their orders.", customer_id="Whom."),
)
INDEX = ToolIndex(Entry(one) for one in TOOLS)


def found(query: str, *, index: ToolIndex = INDEX, at_most: int = 5) -> list[str]:
    return [match.tool.name for match in index.search(query)][:at_most]


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("exchange rate", "bank__getExchangeRate"),
        ("what are Swiss francs worth in dollars?", "bank__getExchangeRate"),
        ("pays 30 francs", "bank__pay"),
        ("iban", "bank__pay"),
        ("emailing somebody a message", "mail__send_message"),
        ("which cities will have good weather", "weather__forecast"),
        ("deleting customers", "crm__delete_customer"),
    ],
)
def test_a_task_finds_the_tool_that_does_it(query, best):
    assert found(query)[0] == best


def test_a_query_without_a_known_word_finds_nothing():
    assert found("zebra") == found("the of and") == found("") == []


def test_a_server_is_found_by_its_name_and_its_instructions():
    tools = [
        Entry(ToolDefinition(name="a__list", server="a"), "Holds the minutes of the board's meetings."),
        Entry(ToolDefinition(name="jira__list", server="jira")),
    ]
    index = ToolIndex(tools)

    assert found("minutes of meetings", index=index) == ["a__list"]
    assert found("jira", index=index) == ["jira__list"]


def test_parameters_within_objects_and_lists_are_words_too():
    deep = {"properties": {"rows": {"type": "array", "items": {"properties": {"voltage": {}}}}}}
    index = ToolIndex([Entry(tool("a")), Entry(ToolDefinition(name="b", input_schema=deep))])

    assert found("voltage", index=index) == ["b"]


def test_the_second_task_of_a_query_is_found_beside_the_first():
    both = "Send money to an account, money to that account, and tell me tomorrow's weather"

    assert set(found(both, at_most=2)) == {"bank__pay", "weather__forecast"}


def test_a_word_within_the_word_of_a_name_finds_its_tool():
    tools = [tool("mail__send_docusign", "Send an envelope."), tool("mail__send_letter", "Send by post.")]

    assert found("sign a PDF contract", index=ToolIndex(map(Entry, tools)), at_most=1) == ["mail__send_docusign"]


def test_a_whole_word_counts_more_than_one_within_a_name():
    tools = [tool("a__report_day", "All of a day."), tool("b__open_port", "Open one.")]

    assert found("open a port", index=ToolIndex(map(Entry, tools)))[0] == "b__open_port"


def test_equal_tools_keep_the_order_of_the_index():
    twins = [Entry(tool(f"{letter}__ping", "Ping.")) for letter in "cab"]

    assert found("ping", index=ToolIndex(twins)) == ["c__ping", "a__ping", "b__ping"]


@pytest.mark.parametrize("schema", [{}, {"properties": []}, {"properties": {"a": True, "b": {"description": 7}}}])
def test_a_schema_of_any_shape_can_be_indexed(schema):
    index = ToolIndex([Entry(ToolDefinition(name="odd", input_schema=schema))])

    assert found("odd", index=index) == ["odd"]


def test_an_empty_index_finds_nothing():
    assert found("anything", index=ToolIndex([])) == []


def test_names_are_cut_at_signs_capitals_and_digits():
    assert words("getUserByID2 list_HTTPRoutes v3-beta") == "get user id 2 list http routes v 3 beta".split()


@pytest.mark.parametrize(
    "forms",
    [
        ("translate", "translation", "translations"),
        ("plan", "plans", "planning", "planned"),
        ("city", "cities"),
        ("search", "searches", "searching"),
        ("address", "addresses"),
    ],
)
def test_the_forms_of_a_word_have_one_stem(forms):
    assert len({stem(form) for form in forms}) == 1
