"""No schema, pattern or value keeps the evaluator busy beyond its budget."""

from __future__ import annotations

from typing import Any

import pytest

from wayline.schemas import Budget, OverBudget, UnusableSchema, compile_schema
from wayline.schemas.limits import STEPS_MAX
from wayline.schemas.nodes import PROBLEMS_FOUND_MAX
from wayline.schemas.problems import PROBLEM_MAX_CHARS

from ...hostile.schemas import CASES, HostileSchema

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def outcome_of(case: HostileSchema, *, lenient: bool) -> str:
    budget = Budget()
    try:
        problems = compile_schema(case.schema, lenient=lenient).problems(case.value, budget=budget)
    except UnusableSchema:
        return "unusable"
    except OverBudget as error:
        assert str(error)
        return "over budget"
    assert budget.spent <= STEPS_MAX
    assert len(problems) <= PROBLEMS_FOUND_MAX
    assert all(len(problem) <= 2 * PROBLEM_MAX_CHARS + 10 for problem in problems)
    return "refused" if problems else "fits"


@every_case
def test_a_strangers_tool_has_the_outcome_of_its_case(case: HostileSchema):
    assert outcome_of(case, lenient=True) == case.outcome


@every_case
def test_a_schema_of_answers_has_the_outcome_of_its_case(case: HostileSchema):
    assert outcome_of(case, lenient=False) == (case.strict or case.outcome)


def test_what_is_passed_over_is_named():
    schema: dict[str, Any] = {"properties": {"a": {"pattern": r"(a*)\1"}, "b": {"$ref": "http://example.com/x"}}}

    unchecked = compile_schema(schema, lenient=True).unchecked

    assert [one.partition(":")[0] for one in unchecked] == ["$.properties.a.pattern", "$.properties.b.$ref"]
    assert "which is not in it" in unchecked[1]


def test_the_same_steps_are_counted_every_time():
    case = next(case for case in CASES if case.name == "doubling by anyOf")
    budgets = [Budget(), Budget()]

    for budget in budgets:
        compile_schema(case.schema).problems(case.value, budget=budget)

    assert budgets[0].spent == budgets[1].spent < 1_000
