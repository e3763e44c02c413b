"""A value that was made slim takes less memory and is otherwise what it was."""

import pytest
from pydantic import ValidationError

from wayline.contracts.base import slim_all
from wayline.contracts.chat import AssistantMessage, ToolCall
from wayline.contracts.jobs import JobOptions, SubmitJob


def a_job(text: str = "why?", **options: object) -> SubmitJob:
    return SubmitJob(
        tenant="acme", agent="a", input=text, options=JobOptions.model_validate({"max_steps": 3, **options})
    )


def an_answer() -> AssistantMessage:
    return AssistantMessage(text="so", tool_calls=(ToolCall(call="1", tool="t", arguments={"q": [1]}),))


@pytest.mark.parametrize("make", [a_job, an_answer])
def test_a_slim_copy_compares_and_serialises_equal(make):
    plain, slimmed = make(), make()

    slim_all(slimmed)

    assert slimmed == plain
    assert slimmed.model_dump_json() == plain.model_dump_json()
    assert slimmed.model_dump_json(exclude_unset=True) == plain.model_dump_json(exclude_unset=True)
    assert slimmed.model_fields_set == plain.model_fields_set
    assert type(slimmed).model_validate_json(slimmed.model_dump_json()) == type(plain).model_validate_json(
        plain.model_dump_json()
    )


def test_its_like_share_their_notes_down_to_the_last_part():
    jobs = [a_job(str(n)) for n in range(10)]
    answers = [an_answer() for _ in range(10)]
    for one in (*jobs, tuple(answers)):
        slim_all(one)

    def kept(values: list) -> int:
        return len({id(value.__pydantic_fields_set__) for value in values})

    assert kept(jobs) == kept([job.options for job in jobs]) == 1
    assert kept(answers) == kept([answer.tool_calls[0] for answer in answers]) == 1


def test_those_that_were_given_other_fields_keep_notes_of_their_own():
    few, many = a_job(), a_job(budget_usd="1")
    slim_all(few)
    slim_all(many)

    assert few.options.model_fields_set == {"max_steps"}
    assert many.options.model_fields_set == {"max_steps", "budget_usd"}


def test_a_changed_copy_changes_nothing_of_those_that_share_with_it():
    one, other = a_job(), a_job("because")
    slim_all(one)
    slim_all(other)

    changed = one.options.model_copy(update={"budget_usd": None, "max_seconds": 5.0})

    assert changed.model_fields_set == {"max_steps", "budget_usd", "max_seconds"}
    assert other.options.model_fields_set == {"max_steps"}
    with pytest.raises(ValidationError, match="frozen"):
        one.agent = "another"
