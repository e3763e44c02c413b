"""No schema, pattern or value keeps the evaluator busy beyond its budget."""

from __future__ import annotations

from typing import Any

import pytest

from wayline.schemas import Budget, OverBudget, UnusableSchema, compile_pattern, compile_schema
from wayline.schemas.keywords.values import canonical
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


def test_a_search_counts_the_size_of_its_pattern():
    small, large = compile_pattern("^[a-z]+$"), compile_pattern("(?:[ab]{1,30}){1,30}c")

    assert small.steps("a" * 199) < 10
    assert large.steps("a" * 199) > 1_000


class Wide(dict[str, Any]):
    """A value with so many properties that nobody may go through all of them."""

    def __iter__(self):
        raise AssertionError("each of its names was looked at")

    def items(self):
        raise AssertionError("it was put into words")


@pytest.mark.parametrize("keyword", ["properties", "dependentSchemas", "dependentRequired", "dependencies"])
def test_names_of_a_schema_are_looked_for_in_a_larger_value(keyword: str):
    part: Any = ["k1"] if keyword == "dependentRequired" else {}
    value = Wide((f"k{n}", n) for n in range(1_000))

    assert compile_schema({keyword: {"k1": part, "missing": part}}).problems(value) == []


def test_a_problem_of_an_alternative_is_never_put_into_words():
    schema = compile_schema({"anyOf": [{"type": "string"}, {"const": "a"}, {"not": {}}, {"type": "object"}]})

    assert schema.problems(Wide(a=1)) == []


def test_values_of_one_hash_are_told_apart_in_linear_time():
    equal = [[number, other] for number, other in colliding(300)]
    assert len({hash(tuple(one)) for one in equal}) == 1

    texts = {canonical(one, Budget()) for one in equal}

    assert len({hash(one) for one in texts}) == len(equal)


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (1, 1.0, True),
        (-0.0, 0, True),
        (1, True, False),
        (0, False, False),
        (1, "1", False),
        ([1, 2], [12], False),
        (["a", "b"], ["a 1:b"], False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": "1 1:b 2"}, {"a": 1, "b": 2}, False),
        ([], {}, False),
        ([[]], [], False),
        (None, "None", False),
    ],
)
def test_equal_values_alone_have_one_text(one: Any, other: Any, equal: bool):
    assert (canonical(one, Budget()) == canonical(other, Budget())) is equal


def colliding(count: int) -> list[tuple[int, int]]:
    """Return pairs of numbers that Python hashes alike, by the inverse of how it hashes a pair."""
    words, prime_1, prime_2, prime_5 = 2**64, 11400714785074694791, 14029467366897019727, 2870177450012600261
    inverse = pow(prime_2, -1, words)
    found: list[tuple[int, int]] = []
    for first in range(1, 100 * count):
        lane = (prime_5 + first * prime_2) % words
        lane = ((lane << 31 | lane >> 33) % words) * prime_1 % words
        second = (12_345 - lane) * inverse % words
        if second < 2**61 - 1:
            found.append((first, second))
        if len(found) == count:
            break
    return found
