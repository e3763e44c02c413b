"""Which tools are in every prompt, and what a model is told of those that it finds."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from wayline.contracts.agents import AgentConfig, ToolLoading
from wayline.contracts.chat import LoadedTools, NoteMessage, ToolCall, ToolMessage, UserMessage
from wayline.contracts.searched_tools import FoundTool, FoundTools, UnusableTool
from wayline.contracts.tool_loading import ALWAYS_MAX, always_loaded
from wayline.contracts.tools import BUILTIN, TOOL_SEARCH, USE_TOOL, ToolDefinition
from wayline.executor.prompt.builtin_tools import pin
from wayline.executor.prompt.notes import REMIND_AFTER_MESSAGES, found, reminder
from wayline.executor.prompt.tool_discovery import (
    DEFINITIONS_CHARS_MAX,
    QUERY_CHARS_MAX,
    Search,
    deferred_tokens,
    loaded_since,
    search_of,
    tell_found,
    tell_unknown,
    tell_unloaded,
    tool_search,
)
from wayline.llm.tokens import estimate_definitions
from wayline.testkit.jobs import job_with

MANY = tuple(ToolDefinition(name=f"crm__{number:02}", server="crm") for number in range(30))
CLOCK = ToolDefinition(name="get_current_time", server=BUILTIN)
PAGE = ToolDefinition(name="book__page", description="Read a page.", input_schema={"properties": {"n": {}}})
OFFERED = (ToolDefinition(name="crm__00"), ToolDefinition(name=TOOL_SEARCH), ToolDefinition(name=USE_TOOL))
JOB = job_with(config=AgentConfig(tools=("*", "late"), tools_off=("web__*",)), offered=OFFERED)


def names(tools) -> list[str]:
    return [tool.name for tool in tools]


def test_fifteen_tools_are_all_loaded_and_no_search_is_offered():
    listed = MANY[:15]

    assert always_loaded(AgentConfig(), listed) is listed
    assert TOOL_SEARCH not in names(pin(("*",), listed))


def test_of_sixteen_tools_those_that_nothing_prefers_are_deferred():
    assert names(always_loaded(AgentConfig(), [*MANY[:15], CLOCK])) == ["get_current_time"]


def test_of_many_tools_required_named_and_built_in_ones_are_loaded():
    listed = sorted([*MANY, CLOCK], key=lambda tool: tool.name)
    config = AgentConfig(tools=("crm__29", "*", "crm__28", "nobody"))

    loaded = names(always_loaded(config, listed, required=("crm__27",)))

    assert loaded == ["crm__27", "crm__28", "crm__29", "get_current_time"]


def test_a_list_of_names_alone_prefers_none_of_them():
    config = AgentConfig(tools=(*names(MANY), CLOCK.name))

    assert names(always_loaded(config, [*MANY, CLOCK])) == ["get_current_time"]


def test_no_more_than_the_most_are_loaded_beside_patterns():
    config = AgentConfig(tools=("*", *names(MANY)))

    assert names(always_loaded(config, [*MANY, CLOCK])) == names(MANY[:ALWAYS_MAX])


@pytest.mark.parametrize(
    ("always", "deferred", "loaded"),
    [
        (("crm__0*",), ("*",), [f"crm__{n:02}" for n in range(10)]),
        (("*",), ("crm__*",), ["get_current_time"]),
        (("*",), ("crm__1*", "crm__2*"), [*(f"crm__{n:02}" for n in range(10)), "get_current_time"]),
        (("crm__00",), ("crm__00",), ["crm__00"]),
        ((), ("*",), []),
    ],
)
def test_the_longest_pattern_decides_how_a_tool_is_loaded(always, deferred, loaded):
    config = AgentConfig.model_validate({"tools": {"always": always, "deferred": deferred}})

    assert names(always_loaded(config, [*MANY, CLOCK])) == loaded


def test_required_tools_are_loaded_whatever_the_agent_defers():
    config = AgentConfig.model_validate({"tools": {"deferred": ["*"]}})

    assert names(always_loaded(config, MANY, required=("crm__07",))) == ["crm__07"]


def test_the_loading_of_tools_is_kept_beside_their_list():
    config = AgentConfig.model_validate({"tools": {"always": ["a", "b"], "deferred": ["b", "c*"]}})

    assert (config.tools, config.tools_loading) == (
        ("a", "b", "c*"),
        ToolLoading(always=("a", "b"), deferred=("b", "c*")),
    )
    assert AgentConfig.model_validate(config.model_dump(mode="json")) == config
    assert AgentConfig(tools=("a",)).tools_loading is None
    with pytest.raises(ValidationError, match=r"(?s)sometimes.*not permitted"):
        AgentConfig.model_validate({"tools": {"sometimes": ["a"]}})


def test_the_search_names_the_servers_and_is_one_object_for_them():
    deferred = [*MANY, CLOCK, ToolDefinition(name="a__b", server="a")]

    search = tool_search(deferred)

    assert search.description.endswith("There are tools of a, crm.")
    assert search is tool_search(list(reversed(deferred)))
    pinned = pin(("crm__00",), [MANY[0]], deferred=deferred)
    assert names(pinned) == ["crm__00", "recall_details", TOOL_SEARCH, USE_TOOL]


def test_a_search_is_read_with_its_limits():
    asked = [search_of(ToolCall(call="1", tool=TOOL_SEARCH, arguments=arguments)) for arguments in (
        {"query": " pay "},
        {"query": "x" * 9_999, "max_results": 99},
        {"query": "pay", "max_results": 0},
    )]  # fmt: skip

    assert asked == [Search("pay", 3), Search("x" * QUERY_CHARS_MAX, 10), Search("pay", 1)]


@pytest.mark.parametrize("arguments", [{}, {"query": ""}, {"query": 7}, {"query": "a", "max_results": "3"}])
def test_an_unreadable_search_is_answered_with_what_is_wrong(arguments):
    refused = search_of(ToolCall(call="1", tool=TOOL_SEARCH, arguments=arguments))

    assert not isinstance(refused, Search) and refused.error is not None
    assert refused.error.code == "invalid_arguments"


def test_found_tools_are_told_with_definitions_and_others_by_name():
    there = FoundTools(
        tools=(FoundTool(tool=PAGE, score=2), FoundTool(tool=OFFERED[0], score=1)),
        loaded=("crm__01",),
        disabled=("web__get", "bank__pay"),
        searched=9,
    )

    told = tell_found(JOB, there)
    narrow = tell_found(job_with(JOB, config=AgentConfig(tools=("book__*",))), there)

    assert told.tools == (PAGE,)
    definition, _, beside = told.content.partition("\n\n")
    assert definition == 'book__page (call it through use_tool): Read a page.\nArguments: {"properties":{"n":{}}}'
    assert told.loaded == LoadedTools(names=("book__page",), beside=beside)
    assert beside.splitlines()[0] == "You have already: crm__01, crm__00."
    assert "web__get fits too, but is switched off" in beside
    assert "bank__pay fits too, but is not among its `tools`" in narrow.content


def test_a_tool_without_room_is_named_and_not_loaded():
    huge, long = (
        ToolDefinition(name=f"book__{name}", description="x" * size)
        for name, size in (("huge", 2 * DEFINITIONS_CHARS_MAX), ("long", DEFINITIONS_CHARS_MAX - 9))
    )

    first = tell_found(JOB, there(huge, PAGE, long))
    later = tell_found(JOB, there(PAGE, huge, CLOCK, long))

    assert (first.tools, later.tools) == ((huge,), (PAGE, CLOCK))
    assert first.content.startswith(f"book__huge (call it through use_tool): {huge.description}\nArguments: {{}}")
    assert first.loaded == LoadedTools(
        names=("book__huge",),
        beside="There is no room for the definitions of book__page, book__long: search for one by its name.",
    )
    assert "book__huge, book__long" in later.content and huge.description not in later.content
    assert huge.description in tell_unloaded(huge)


def there(*tools: ToolDefinition) -> FoundTools:
    """Return what a registry has found."""
    return FoundTools(tools=tuple(FoundTool(tool=tool, score=1) for tool in tools), searched=9)


def test_an_unusable_tool_is_told_with_what_enables_it():
    away = UnusableTool(name="bank__pay", why="its server bank is disabled", how="`wayline mcp enable bank`")

    told = tell_found(JOB, FoundTools(disabled=("web__get",), unusable=(away,), searched=9))

    assert told.content.splitlines()[-1] == (
        "bank__pay fits too, but cannot be called here: its server bank is disabled. "
        "To enable it: `wayline mcp enable bank`."
    )
    assert "web__get" not in told.content


def test_a_search_without_result_says_how_many_were_looked_at():
    told = tell_found(JOB, FoundTools(searched=30))

    assert (told.tools, told.loaded) == ((), None)
    assert told.content == "None of 30 tools fits: try other words for what it should do or return."


def test_an_unloaded_tool_is_told_and_an_unknown_one_refused():
    refused = tell_unknown("book__pag", [PAGE])

    assert tell_unloaded(PAGE).endswith(
        "book__page (call it through use_tool unless it is among your tools): Read a page.\n"
        'Arguments: {"properties":{"n":{}}}'
    )
    assert refused.error is not None and "did you mean 'book__page'?" in refused.error.message


def test_a_job_that_searches_hears_of_changed_tools_alone():
    changed = PAGE.model_copy(update={"description": "Read two pages."})
    known = job_with(JOB, discovered=(PAGE,))

    assert found(JOB, [*OFFERED, *MANY[1:], PAGE]) == ()
    assert found(known, [PAGE, *MANY[1:]]) == ()
    assert found(known, [changed, *MANY[1:]]) == (changed,)


def test_a_search_result_reminds_of_the_tools_it_names():
    go = UserMessage(parts=())
    result = ToolMessage(call="1", tool=TOOL_SEARCH, content="…", loaded=LoadedTools(names=("book__page",)))
    later = tuple(NoteMessage(label="CONTEXT", text="…") for _ in range(REMIND_AFTER_MESSAGES))
    job = job_with(JOB, discovered=(PAGE,))

    assert reminder(job_with(job, messages=(go, result))) is None
    assert reminder(job_with(job, messages=(go, result, *later))) is not None


def test_a_prompt_is_spared_deferred_definitions_less_search_and_found_ones():
    sent = pin(("*",), [], deferred=MANY)
    search = [tool for tool in sent if tool.name == TOOL_SEARCH]
    spared = estimate_definitions(MANY) - estimate_definitions(search)
    later = job_with(JOB, deferred_tokens=spared, discovered=(MANY[3],))

    assert deferred_tokens(job_with(JOB, offered=None), sent, MANY) == spared > 0
    assert deferred_tokens(later, sent, ()) == spared - estimate_definitions([MANY[3]])
    assert deferred_tokens(job_with(JOB, offered=None), pin(("*",), MANY), MANY) == 0


def test_use_tool_is_taken_off_where_only_deferring_brings_it():
    config = AgentConfig.model_validate({"tools": {"deferred": [PAGE.name, CLOCK.name]}})
    job = job_with(JOB, config=config, offered=None)
    listed = [PAGE, CLOCK]
    sent = pin(config.tools, [], deferred=listed)
    brought = [tool for tool in sent if tool.name in (TOOL_SEARCH, USE_TOOL)]

    spared = deferred_tokens(job, sent, listed)

    assert len(brought) == 2
    assert spared == estimate_definitions(listed) - estimate_definitions(brought) < 0
    later = job_with(job, offered=tuple(sent), deferred_tokens=spared, discovered=(PAGE,))
    assert deferred_tokens(later, sent, ()) == spared - estimate_definitions([PAGE])


def test_each_tool_is_kept_as_it_was_first_told():
    newer = PAGE.model_copy(update={"description": "Read two pages."})
    pinned = OFFERED[0].model_copy(update={"description": "Changed."})

    assert loaded_since(job_with(JOB, discovered=(PAGE, pinned, newer))) == (PAGE,)
