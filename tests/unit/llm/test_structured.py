"""Answers that are JSON by a schema: asked for and checked."""

import pytest

from wayline.llm.structured import instruction, problem, schema_problem, unwrapped

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name", "age"],
}


def test_a_valid_answer_has_no_problem():
    assert problem(PERSON, '{"name": "Ada", "age": 36}') is None


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Ada is 36.", "not JSON: "),
        ('{"name": "Ada", "age": "36"}', "age: '36' is not of type 'integer'"),
        ('{"name": "Ada"}', "'age' is a required property"),
        ('{"age": -1, "name": 5}', "age: -1 is less than the minimum of 0; name: 5 is not of type 'string'"),
        ("[]", "[] is not of type 'object'"),
    ],
)
def test_a_problem_names_the_field(text, sentence):
    assert (problem(PERSON, text) or "").startswith(sentence)


def test_a_long_list_of_problems_is_cut():
    found = problem({"items": {"type": "string"}}, str(list(range(1_000))))

    assert found is not None
    assert len(found.split(";")) == 5


@pytest.mark.parametrize("wrong", [{"type": "cat"}, {"properties": 5}, {"allOf": [{"$ref": "#"}]}])
def test_a_schema_that_checks_nothing_is_a_problem(wrong):
    assert schema_problem(wrong) is not None
    assert (problem(wrong, "{}") or "").startswith("cannot be checked")


@pytest.mark.parametrize("pattern", ["[", r"(a*)\1"])
def test_a_pattern_that_is_not_searched_is_refused_and_passed_over(pattern):
    schema = {"properties": {"a": {"pattern": pattern}}}

    assert (schema_problem(schema) or "").startswith("$.properties.a.pattern: ")
    assert problem(schema, '{"a": "x"}') is None


def test_an_answer_beyond_the_budget_is_named_as_that():
    schema = {"items": {"allOf": [{"minimum": n} for n in range(200)]}}

    assert "steps" in (problem(schema, str([500] * 1_000)) or "")


def test_a_good_schema_has_no_problem():
    assert schema_problem(PERSON) is None


def test_a_schema_is_never_fetched(monkeypatch):
    fetched = []
    monkeypatch.setattr("urllib.request.urlopen", fetched.append)

    found = problem({"$ref": "http://127.0.0.1:9/schema.json"}, "{}")

    assert found is None
    assert "which is not in it" in (schema_problem({"$ref": "http://127.0.0.1:9/schema.json"}) or "")
    assert fetched == []


def test_an_endless_schema_is_no_trap():
    assert (problem({"$ref": "#"}, "{}") or "").startswith("cannot be checked")


@pytest.mark.parametrize(
    ("text", "json"),
    [
        (' {"a": 1}\n', '{"a": 1}'),
        ('```json\n{"a": 1}\n```', '{"a":1}'),
        ('Here: {"a": 1}. Done.', '{"a":1}'),
        ("no json", "no json"),
        ("[1]", "[1]"),
    ],
)
def test_an_answer_is_taken_out_of_its_wrapping(text, json):
    assert unwrapped(text) == json


def test_the_instruction_keeps_the_order_of_fields():
    schema = {"type": "object", "properties": {"reasoning": {"type": "string"}, "answer": {"type": "string"}}}
    assert instruction(schema).endswith('"properties":{"reasoning":{"type":"string"},"answer":{"type":"string"}}}')
