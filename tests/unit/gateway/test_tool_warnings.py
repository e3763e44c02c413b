"""An agent that names tools which do not exist is saved with a warning."""

from wayline.contracts.tools import MissingTool, ServerAway, ToolDefinition, ToolList
from wayline.gateway.tool_warnings import WARNINGS_MAX, unknown_tools

THERE = ToolList(tools=(ToolDefinition(name="search_knowledge"), ToolDefinition(name="bank__pay")))


def test_names_and_patterns_that_match_a_tool_are_no_warning():
    assert unknown_tools(("*", "search_knowledge", "bank__*"), THERE) == ()


def test_an_unknown_tool_name_is_reported_with_the_nearest():
    assert unknown_tools(("serch_knowledge", "qqq"), THERE) == (
        "no tool is called 'serch_knowledge' (nearest: search_knowledge)",
        "no tool is called 'qqq'",
    )


def test_unanswering_servers_are_reported_beside_the_unknown_name():
    there = THERE.model_copy(update={"away": (ServerAway(name="crm", why="refused"),)})

    assert unknown_tools(("crm__*",), there) == ("no tool is called 'crm__*'; not reached at the moment: crm",)


def test_a_tool_that_is_not_configured_is_reported_with_its_setting():
    there = THERE.model_copy(update={"missing": (MissingTool(name="web_search", why="set the provider"),)})

    assert unknown_tools(("web_search", "web_*"), there) == ("set the provider", "no tool is called 'web_*'")


def test_a_long_list_of_unknown_names_is_cut_and_counted():
    warnings = unknown_tools([f"zz{n}" for n in range(WARNINGS_MAX + 5)], THERE)

    assert len(warnings) == WARNINGS_MAX + 1
    assert warnings[-1] == "5 more tools do not exist either"
