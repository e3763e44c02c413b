"""What a server asks a person for becomes a question with a schema, or a refusal that says what to do."""

from __future__ import annotations

from typing import Any

import pytest
from mcp_types import InputRequiredResult

from wayline.contracts.tools import InputRequest
from wayline.tool_registry.calls.asked_input import STATE_MAX_BYTES, asked_input


def question(message: str = "Which account?", *, name: str = "account", **params: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema, **params}}


def result(*, state: str | None = "s", **questions: dict[str, Any]) -> InputRequiredResult:
    return InputRequiredResult.model_validate({"inputRequests": questions or None, "requestState": state})


def test_one_question_is_asked_with_its_own_schema():
    reply = asked_input(result(a=question()))

    assert reply.status == "failed"
    assert reply.input == InputRequest(
        message="Which account?",
        input_schema={"type": "object", "properties": {"account": {"type": "string"}}, "required": ["account"]},
        keys=("a",),
        state="s",
    )


def test_several_questions_are_one_with_a_property_for_each():
    reply = asked_input(result(a=question(), b=question("Which day?", name="day")))

    assert reply.input is not None
    assert (reply.input.message, reply.input.keys) == ("Which account?\nWhich day?", ("a", "b"))
    assert reply.input.input_schema["required"] == ["a", "b"]


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (result(a=question(name="db_password")), "the secret 'db_password'"),
        (result(a=question(name="apiKey")), "the secret 'apiKey'"),
        (result(a={"method": "roots/list"}), "asks for roots/list"),
        (
            result(
                a={
                    "method": "elicitation/create",
                    "params": {"mode": "url", "message": "Pay", "url": "https://x.example"},
                }
            ),
            "open https://x.example",
        ),
        (result(a=question(), state="x" * (STATE_MAX_BYTES + 1)), "a state above"),
        (result(), "without asking for anything"),
        (result(**{f"q{n}": question() for n in range(9)}), "asks 9 questions"),
    ],
)
def test_what_nobody_may_be_asked_is_refused(asked: InputRequiredResult, why: str):
    reply = asked_input(asked)

    assert reply.input is None
    assert reply.error is not None and reply.error.code == "refused" and why in reply.error.message


def test_a_number_of_tokens_is_no_secret():
    assert asked_input(result(a=question(name="max_tokens"))).input is not None


def test_a_question_repeats_no_secret_of_its_server():
    reply = asked_input(result(a=question("Is key-123 yours?")), hide=lambda text: text.replace("key-123", "***"))

    assert reply.input is not None and reply.input.message == "Is *** yours?"
    assert reply.error is not None and "key-123" not in reply.error.message
