"""A plan is assembled from what the log recorded: dependencies and clusters are the tools', waves are computed."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wayline.contracts import events as e
from wayline.contracts.agents import AgentConfig
from wayline.contracts.chat import AssistantMessage, ToolCall
from wayline.contracts.tools import TASK_TOOLS
from wayline.executor.decide.actions import CallModel, Complete, Correct, Fail, RunTools
from wayline.executor.decide.final_result import STEPS_MAX, empty_value, final_result
from wayline.executor.decide.planned_graph import planned_graph
from wayline.journal.calls import RecordedResult
from wayline.llm.structured import value_problem

from ..logs import Log, card
from ..planned import PLANNER, TOOLS, library, offline, played, scripted

SHOP = json.loads((Path(__file__).parents[2] / "planning" / "coffee_shop.json").read_text())
VENUE = [
    {"id": "A", "name": "Send the invitations", "text": "Once the venue is booked."},
    {"id": "B", "name": "Book the venue"},
    {"id": "C", "name": "Order the cake", "priority": 1},
]
ORDER = '{"prioritized_tasks": [{"id": "A", "reason": "it matters"}, {"id": "C", "reason": "r"}], "reasoning": "why"}'


def asked(tasks=VENUE, **fields) -> Log:
    return Log(config=PLANNER, input=json.dumps({"outcome": "A party", "tasks": tasks} | fields), max_steps=10)


def plan_of(action) -> dict:
    assert isinstance(action, Complete), action
    plan = json.loads(action.answer)
    assert value_problem(PLANNER.output_schema or {}, plan, steps_max=STEPS_MAX) is None
    return plan


def require_valid_waves(plan: dict) -> None:
    place = {task: wave["wave"] for wave in plan["execution_waves"] for task in wave["tasks"]}
    listed = [task["id"] for task in plan["prioritized_tasks"]]
    assert sorted(place) == sorted(listed) and len(place) == len(listed)
    for one in plan["dependencies"]:
        if not one.get("cut"):
            assert place[one["task"]] > place[one["needs"]]
            assert listed.index(one["task"]) > listed.index(one["needs"])


def test_the_order_is_the_models_and_the_rest_is_the_tools():
    plan = plan_of(played(asked(), scripted(VENUE, ORDER)))

    assert [(one["id"], one["wave"]) for one in plan["prioritized_tasks"]] == [("C", 1), ("B", 1), ("A", 2)]
    assert plan["prioritized_tasks"][2]["reason"] == "it matters" and plan["reasoning"] == "why"
    assert plan["execution_waves"] == [{"wave": 1, "tasks": ["C", "B"]}, {"wave": 2, "tasks": ["A"]}]
    [edge] = plan["dependencies"]
    assert (edge["task"], edge["needs"], edge["quote"]) == ("A", "B", "Once the venue is booked.")
    assert sorted(task for one in plan["clusters"] for task in one["tasks"]) == ["A", "B", "C"]
    metadata = plan["execution_metadata"]
    assert (metadata["steps"], metadata["calls"]) == (6, 5) and metadata["duration_ms"] > 0
    assert "empty_because" not in metadata


def test_dependencies_in_a_models_prose_count_for_nothing():
    lie = json.loads(ORDER) | {"dependencies": [{"task": "C", "needs": "A"}], "reasoning": "C needs A, says nobody"}

    plan = plan_of(played(asked(), scripted(VENUE, json.dumps(lie))))

    assert [(one["task"], one["needs"]) for one in plan["dependencies"]] == [("A", "B")]


def test_thirty_tasks_are_planned_whole_with_their_cycles_cut():
    plan = plan_of(played(asked(SHOP["tasks"])))

    found = {(one["task"], one["needs"]) for one in plan["dependencies"]}
    cut = [set(one["cycle"]) for one in plan["dependencies"] if one.get("cut")]
    assert len(found & {tuple(one) for one in SHOP["dependencies"]}) >= 0.9 * 45
    assert sorted(map(sorted, cut)) == sorted(map(sorted, SHOP["cycles"]))
    assert len(plan["prioritized_tasks"]) == 30 and plan["execution_metadata"]["steps"] <= 10
    require_valid_waves(plan)


def test_without_a_model_the_tools_are_called_in_order():
    log = asked()

    plan = plan_of(played(log, offline))

    called = [event.tool for event in log.events if isinstance(event, e.ToolRequested)]
    # Nothing was found to read around.
    assert called == [tool for tool in TASK_TOOLS if tool != "get_document_context"]
    assert "does not reason" in plan["reasoning"]
    require_valid_waves(plan)


def test_documents_bring_the_tasks_where_none_are_given():
    listed = {
        "tasks": [{"id": "1", "name": "Dig"}, {"id": "2", "name": "Plant"}],
        "dependencies": [{"task": "2", "needs": "1", "weight": 0.9, "kind": "name", "quote": "q", "document_id": "d"}],
    }
    passage = {"document_id": "d", "chunk_id": "d#0", "text": "…"}
    tools = {"semantic_search": {"passages": [passage]}, "detect_dependencies": listed}
    log = asked(None)

    plan = plan_of(played(log, offline, lambda tool, given: tools.get(tool) or library(tool, given)))

    assert plan["execution_waves"] == [{"wave": 1, "tasks": ["1"]}, {"wave": 2, "tasks": ["2"]}]
    assert plan["dependencies"][0]["document_id"] == "d"
    asked_for = {event.tool: event.arguments for event in log.events if isinstance(event, e.ToolRequested)}
    assert asked_for["detect_dependencies"] == {"document_ids": ["d"]}
    assert asked_for["get_document_context"] == {"document_id": "d", "chunk_id": "d#0"}


def test_what_earlier_plans_know_counts_a_little_less():
    known = {"task": "order the CAKE", "needs": "Book the venue", "weight": 1.0, "kind": "name", "quote": "q"}
    graph = {"tasks": [], "dependencies": [known | {"source_job": "job-0"}, known | {"needs": "Something else"}]}

    log = asked()
    action = played(log, tools=lambda tool, given: graph if tool == "query_task_graph" else library(tool, given))

    plan = plan_of(action)
    edges = {(one["task"], one["needs"]): one for one in plan["dependencies"]}
    assert (edges["C", "B"]["weight"], edges["C", "B"]["source_job"]) == (0.9, "job-0")
    saved = planned_graph(log.say(e.JobCompleted, answer=action.answer).job)
    assert saved is not None and [(one.task, one.needs) for one in saved.edges] == [
        ("Send the invitations", "Book the venue")
    ]
    assert len(saved.tasks) == 3 and not saved.untrusted


def test_two_tasks_of_one_name_are_two_tasks():
    twice = [{"id": "1", "name": "Go home"}, {"id": "2", "name": "Eat", "text": "After 1."}]
    twice.append({"id": "3", "name": "Go home", "text": "After 2."})

    edges = plan_of(played(asked(twice)))["dependencies"]

    assert {(one["task"], one["needs"]) for one in edges} == {("2", "1"), ("3", "2")}


def test_framed_results_are_read_and_taint_what_is_stored():
    log = asked()

    action = played(log, taints=True)

    assert len(plan_of(action)["dependencies"]) == 1
    saved = planned_graph(log.say(e.JobCompleted, answer=action.answer).job)
    assert saved is not None and saved.untrusted


def test_a_shortened_result_is_assembled_from_its_whole():
    log = asked()
    log.ask(1).answer("", "detect_dependencies")
    whole = json.dumps(library("detect_dependencies", {"tasks": VENUE}))
    named = {"step": 1, "call": "1", "tool": "detect_dependencies"}
    log.say(e.ToolCompleted, **named, status="success", content="{… [shortened]", full=whole)

    assert len(plan_of(log.ask(2).answer(ORDER).next)["dependencies"]) == 1


def test_an_answer_before_the_dependencies_is_sent_back_once():
    log = asked().ask().answer(ORDER)

    correction = log.next
    assert isinstance(correction, Correct) and "detect_dependencies" in correction.text
    log.say(e.ContextInjected, note={"label": "CORRECTION", "text": correction.text}, about="required_tools")
    action = log.ask(2).answer(ORDER).next

    plan = plan_of(action)
    assert plan["dependencies"] == [] and len(plan["execution_waves"]) == 1
    assert "detect_dependencies" in (action.reason or "")


@pytest.mark.parametrize("answer", ["I am sorry.", '{"prioritized_tasks": "all"}', '{"prioritized_tasks": [{"id"', ""])
def test_an_unreadable_answer_gives_an_empty_plan_and_why(answer: str):
    action = played(asked(), scripted(VENUE, answer))

    plan = plan_of(action)
    assert [plan[part] for part in ("prioritized_tasks", "execution_waves", "dependencies", "clusters")] == [[]] * 4
    assert "JSON" in plan["execution_metadata"]["empty_because"]
    assert isinstance(action, Complete) and action.partial and action.reason


def test_used_up_steps_give_an_empty_plan_and_why():
    def searching(_: Log) -> AssistantMessage:
        return AssistantMessage(tool_calls=(ToolCall(call="1", tool="semantic_search", arguments={"query": "q"}),))

    log = Log(config=PLANNER, input="A party", max_steps=2)

    assert "2 steps" in plan_of(played(log, searching))["execution_metadata"]["empty_because"]


def test_nothing_to_plan_is_an_empty_plan_that_says_so():
    plan = plan_of(played(Log(config=PLANNER, input="A party", max_steps=10)))

    assert "no tasks" in plan["execution_metadata"]["empty_because"] and plan["prioritized_tasks"] == []
    assert planned_graph(Log(config=PLANNER).job) is None


def test_an_empty_plan_names_the_tools_that_failed():
    log = asked(None).ask().answer("", "detect_dependencies")
    error = {"code": "tool_failed", "message": "no document 'plan.md'"}
    log.say(e.ToolCompleted, step=1, call="1", tool="detect_dependencies", status="failed", error=error)

    plan = plan_of(log.ask(2).answer('{"prioritized_tasks": [], "reasoning": ""}').next)

    assert "detect_dependencies failed: no document 'plan.md'" in plan["execution_metadata"]["empty_because"]


FLOATS = st.floats(allow_nan=False, allow_infinity=False)
LEAVES = (
    st.none() | st.booleans() | st.integers(-2, 2) | FLOATS | st.sampled_from(["A", "B", "1", "Book it", "\ud800", ""])
)
ENTRIES = st.dictionaries(
    st.sampled_from(["id", "name", "task", "needs", "weight", "quote", "label", "tasks"]),
    LEAVES | st.lists(LEAVES, max_size=3),
)
RESULTS = st.dictionaries(
    st.sampled_from(["tasks", "dependencies", "clusters"]), LEAVES | st.lists(LEAVES | ENTRIES, max_size=5)
)


@given(st.lists(st.tuples(st.sampled_from(TASK_TOOLS), RESULTS), max_size=4), st.lists(ENTRIES, max_size=3))
def test_whatever_was_recorded_a_plan_is_valid(results, order):
    recorded = tuple(RecordedResult(tool, json.dumps(value)) for tool, value in results)
    job = Log(config=PLANNER, input=json.dumps({"outcome": "x", "tasks": ["Book it"]})).job
    job = job._replace(tools=job.tools._replace(recorded=recorded))

    plan = plan_of(final_result(job, Complete(json.dumps({"prioritized_tasks": order, "reasoning": None}))))

    require_valid_waves(plan)
    assert {task for one in plan["clusters"] for task in one["tasks"]} <= {
        one["id"] for one in plan["prioritized_tasks"]
    }


HALF = "half a \\ud83d character"
"""As an escape in JSON: no text that could be sent on."""


@pytest.mark.parametrize("given", [f'{{"outcome": "{HALF}"}}', f'{{"outcome": "x", "tasks": ["Dig", "{HALF}"]}}'])
def test_half_characters_end_no_plan(given):
    draft = f'{{"prioritized_tasks": [{{"id": "1", "reason": "{HALF}"}}], "reasoning": "{HALF}"}}'
    log = Log(config=PLANNER, input=given, max_steps=10)
    log.ask().answer("", "detect_dependencies")
    found = f'{{"tasks": [{{"id": "1", "name": "{HALF}"}}], "dependencies": []}}'
    log.say(e.ToolCompleted, step=1, call="1", tool="detect_dependencies", status="success", content=found)

    plan_of(log.ask(2).answer(draft).next)

    plan_of(played(Log(config=PLANNER, input=given, max_steps=10), offline))


def test_a_job_whose_words_another_took_leaves_no_plan():
    log = asked().say(e.JobCompleted, answer="Handed to job j0, which was running: its answer takes this into account.")

    assert planned_graph(log.job) is None


def test_names_with_hyphens_call_the_tools():
    log = asked().ask().answer("", "detect-dependencies")

    action = log.next

    assert isinstance(action, RunTools) and action.calls[0].meant.tool == "detect_dependencies"


CITY = {
    "type": "object",
    "required": ["city", "of"],
    "properties": {"city": {"type": "string"}, "of": {"type": "array"}},
}


def test_any_agent_may_end_empty_where_no_answer_fits():
    log = Log(config=AgentConfig(output_schema=CITY, on_invalid="empty")).ask().answer("{}")
    log.take(log.next)

    action = log.ask(2).answer("{}").next

    assert isinstance(action, Complete) and json.loads(action.answer) == {"city": "", "of": []}
    assert action.partial and "required" in (action.reason or "")


@pytest.mark.parametrize("on_invalid", ["empty", "fail"])
def test_words_outside_the_protocol_are_no_result_of_a_schema(on_invalid):
    config = AgentConfig(output_schema=CITY, on_invalid=on_invalid)
    log = Log(config=config, cards=(card("acme/primary", tools="json"),))

    for step in (1, 2, 3):
        log.ask(step, tools=TOOLS if step == 1 else None).answer('{"action": "respond", "respo', read_as="text")
        action = log.next
        log.take(action)

    assert isinstance(action, Complete if on_invalid == "empty" else Fail)
    assert on_invalid == "fail" or json.loads(action.answer) == {"city": "", "of": []}


def test_an_agent_whose_schema_takes_nothing_empty_fails_as_before():
    config = AgentConfig(output_schema={"type": "string", "minLength": 3}, on_invalid="empty")
    log = Log(config=config).ask().answer("no json")
    log.take(log.next)

    assert isinstance(log.ask(2).answer("no json").next, Fail)


def test_an_empty_value_says_why_where_its_schema_has_a_place():
    schema = {"type": "object", "properties": {"empty_because": {"type": "string"}, "n": {"type": "integer"}}}

    assert empty_value(schema | {"required": ["n"]}, "no time") == {"n": 0, "empty_because": "no time"}


def test_a_model_that_goes_on_is_asked_for_its_next_step():
    assert asked().next == CallModel(1, 1)


def test_an_assembler_needs_a_schema():
    with pytest.raises(ValueError, match="output_schema"):
        AgentConfig(assemble="task_plan")
