"""Arguments against schemas."""

from __future__ import annotations

import asyncio

import pytest

from wayline.schemas.problems import PROBLEM_MAX_CHARS
from wayline.tool_registry.definitions.arguments import STEPS_ON_LOOP, Arguments, digest_of

from ....hostile.schemas import CASES

SCHEMA = {
    "type": "object",
    "properties": {
        "to": {"type": "string"},
        "items": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}},
    },
    "required": ["to"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"to": "me"}, None),
        ({}, "'to' is a required property"),
        ({"to": 1}, "to: 1 is not of type 'string'"),
        ({"to": "me", "items": [{"n": 1}, {"n": "x"}]}, "items.1.n: 'x' is not of type 'integer'"),
        ({"to": "me", "cc": 1}, "Additional properties are not allowed ('cc' was unexpected)"),
    ],
)
def test_a_problem_names_the_field(arguments, problem):
    assert Arguments().problem(SCHEMA, arguments) == problem


def test_every_wrong_field_is_named():
    problem = Arguments().problem(SCHEMA, {"to": 1, "items": 2})

    assert problem == "items: 2 is not of type 'array'; to: 1 is not of type 'string'"


def test_a_schema_is_checked_against_as_itself_also_by_its_digest():
    other = {**SCHEMA, "required": ["items"]}
    arguments = Arguments()

    problems = [arguments.problem(schema, {}, digest=digest_of(schema)) for schema in (SCHEMA, other, SCHEMA)]

    assert problems == ["'to' is a required property", "'items' is a required property", "'to' is a required property"]


def test_a_huge_value_is_not_repeated_whole():
    problem = Arguments().problem(SCHEMA, {"to": ["x" * 100_000]})

    assert problem is not None
    assert len(problem) < PROBLEM_MAX_CHARS + 20


def test_a_schema_that_points_elsewhere_is_not_fetched():
    schema = {"properties": {"a": {"$ref": "http://127.0.0.1:1/x.json"}, "b": {"type": "integer"}}}

    assert Arguments().check_schema(schema) is None
    assert Arguments().problem(schema, {"a": 1, "b": "x"}) == "b: 'x' is not of type 'integer'"


def test_a_schema_may_point_into_itself():
    schema = {"$defs": {"n": {"type": "integer"}}, "properties": {"a": {"$ref": "#/$defs/n"}}}

    assert Arguments().problem(schema, {"a": "x"}) == "a: 'x' is not of type 'integer'"


def test_a_schema_that_is_none_is_found_out():
    problem = Arguments().check_schema({"type": "object", "properties": {"a": {"type": "strange"}}})

    assert problem is not None
    assert "a" in problem


DEEP = {"type": "object"}
for _ in range(300):
    DEEP = {"type": "object", "properties": {"a": DEEP}}


@pytest.mark.parametrize(
    "schema", [DEEP, {"$schema": 5}, {"$schema": []}, {"properties": {"a": {"maximum": 2**256 - 1}}}]
)
def test_an_unusable_schema_is_reported_without_raising(schema):
    assert "cannot be used" in (Arguments().check_schema(schema) or "")


def test_an_endlessly_recursive_schema_is_a_problem_not_a_crash():
    schema = {"properties": {"a": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"$ref": "#/$defs/n"}}}

    assert "without end" in (Arguments().problem(schema, {"a": 1}) or "")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_a_hostile_schema_is_judged_or_refused_with_its_limit(case):
    arguments = Arguments()

    unusable = arguments.check_schema(case.schema)
    found = None if unusable else await arguments.check(case.schema, case.value, tenant="acme")

    assert (unusable is not None) is (case.outcome == "unusable")
    assert (found or "").startswith("cannot be checked") is (case.outcome == "over budget")


async def test_a_long_check_leaves_the_loop_to_others():
    schema = {"properties": {"a": {"items": {"type": "integer"}}}}
    arguments = Arguments()
    await arguments.check(schema, {}, tenant="acme")

    long = asyncio.create_task(arguments.check(schema, {"a": [1] * STEPS_ON_LOOP + ["x"]}, tenant="acme"))
    await asyncio.sleep(0)
    short = await arguments.check(schema, {"a": ["x"]}, tenant="acme")

    assert not long.done()
    assert short == "a.0: 'x' is not of type 'integer'"
    assert await long == f"a.{STEPS_ON_LOOP}: 'x' is not of type 'integer'"


async def test_the_schema_that_was_called_last_stays_compiled(monkeypatch):
    monkeypatch.setattr("wayline.tool_registry.definitions.arguments.SCHEMAS_KEPT_MAX", 2)
    arguments, schemas = Arguments(), [{"type": "object", "title": str(n)} for n in range(3)]
    for n in (0, 1, 0, 2):
        assert arguments.problem(schemas[n], {}) is None

    assert list(arguments._compiled) == [digest_of(schemas[0]), digest_of(schemas[2])]
