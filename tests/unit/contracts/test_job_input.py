"""What a job was asked is shown by its beginning; small amounts are written as people write them."""

from decimal import Decimal

import pytest

from wayline.contracts.chat import FilePart, ImagePart, TextPart
from wayline.contracts.jobs import INPUT_SHOWN_MAX, EarlierMessage, JobOptions, JobView, Status, SubmitJob
from wayline.contracts.jobs.submission import OUTPUT_SCHEMA_MAX_BYTES


def beginning(given: object) -> str:
    return SubmitJob.model_validate({"tenant": "t", "agent": "a", "input": given}).beginning()


def test_a_short_input_is_shown_whole_on_one_line():
    assert beginning(" What is\n\ta job? ") == "What is a job?"


@pytest.mark.parametrize("text", ["x" * 1_000_000, "a b " * 300])
def test_a_long_input_is_cut_at_its_limit_and_marked(text: str):
    shown = beginning(text)

    assert len(shown) == INPUT_SHOWN_MAX
    assert shown.endswith("…")


def test_an_image_and_a_file_stand_as_their_documents():
    parts = (ImagePart(document_id="photo"), FilePart(document_id="bill"), TextPart(text="What is this?"))

    assert beginning(parts) == "[image photo] [file bill] What is this?"


@pytest.mark.parametrize(
    ("cost", "written"), [("0E-9", "0"), ("1.23E-7", "0.000000123"), ("0.031", "0.031"), ("1E+3", "1000")]
)
def test_an_amount_is_never_written_with_an_exponent(cost: str, written: str):
    job = JobView(job_id="j", status=Status.COMPLETED, agent="a", cost_usd=Decimal(cost))

    assert f'"cost_usd":"{written}"' in job.model_dump_json()
    assert job.model_dump(mode="json")["cost_usd"] == written


def test_an_object_is_told_as_its_json():
    given = {"outcome": "Öffnen", "tasks": [{"id": 1}]}

    job = SubmitJob.model_validate({"tenant": "t", "agent": "a", "input": given})

    assert job.input == '{"outcome":"Öffnen","tasks":[{"id":1}]}'
    assert job.content_hash() == SubmitJob(tenant="t", agent="a", input=job.input).content_hash()
    assert SubmitJob.from_wire(job.to_wire(), "jobs.submit.t").input == job.input


def test_a_job_of_a_session_has_no_other_past():
    said = {"role": "user", "parts": [{"type": "text", "text": "My name is Ada."}]}
    job = {"tenant": "t", "agent": "a", "input": "Who am I?", "history": [said]}

    with pytest.raises(ValueError, match="leave out history or session_id"):
        SubmitJob.model_validate({**job, "session_id": "s-1"})

    assert SubmitJob.model_validate(job).told_parts() == (
        TextPart(text="My name is Ada."),
        TextPart(text="Who am I?"),
    )


def test_a_job_without_a_past_keeps_its_stored_hash():
    job = SubmitJob(tenant="t", agent="a", input="x")
    said = EarlierMessage(role="user", parts=(TextPart(text="y"),))

    assert job.content_hash() == "37fc5b74aba60eafdeadce3ea6dda15e"
    assert job.model_copy(update={"history": (said,)}).content_hash() != job.content_hash()
    assert job.model_copy(update={"options": JobOptions(effort="low")}).content_hash() != job.content_hash()


def test_a_schema_of_a_job_is_bounded():
    with pytest.raises(ValueError, match="more than 65536 bytes"):
        JobOptions(output_schema={"description": "x" * OUTPUT_SCHEMA_MAX_BYTES})
