"""Messages: what they say, where they go, and what is refused."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from wayline.contracts import ids
from wayline.contracts.agents import AgentConfig
from wayline.contracts.base import Message, explain, tenant_of
from wayline.contracts.budgets import BudgetConfig
from wayline.contracts.errors import InvalidMessage
from wayline.contracts.jobs import Cancel, JobOptions, RunJob, Signal, SubmitJob, may_reply_to
from wayline.contracts.money import Usage, cost_sum, usd


def test_a_message_fills_its_subject_and_listens_with_stars():
    ticket = RunJob(tenant="acme", lane="batch", job="j1", at=7)

    assert ticket.subject == "jobs.run.batch.acme"
    assert RunJob.listens() == "jobs.run.*.*"
    assert ticket.to_wire() == b'{"job":"j1","at":7,"record":null}'
    assert RunJob.from_wire(ticket.to_wire(), ticket.subject) == ticket


def test_fields_of_the_subject_are_never_taken_from_the_body():
    heard = Signal.from_wire(b'{"signal":{"type":"cancel"}}', "signals.acme.j1")

    assert (heard.tenant, heard.job_id, heard.signal) == ("acme", "j1", Cancel())
    with pytest.raises(InvalidMessage, match="tenant in the body is 'other'"):
        SubmitJob.from_wire(b'{"agent":"a","input":"x","tenant":"other"}', "jobs.submit.acme")


@pytest.mark.parametrize(
    ("subject", "tenant"),
    [
        ("jobs.submit.acme", "acme"),
        ("jobs.run.batch.acme", "acme"),
        ("signals.acme.j1", "acme"),
        ("events.acme.j1", "acme"),
        ("telemetry.traces", ""),
        ("something.else", ""),
    ],
)
def test_the_tenant_of_any_subject_is_known_without_its_body(subject, tenant):
    assert tenant_of(subject) == tenant


def test_a_job_called_export_by_a_version_before_is_read():
    assert SubmitJob.from_wire(b'{"agent":"a","input":"x","job_id":"export"}', "jobs.submit.acme").job_id == "export"
    with pytest.raises(ValidationError, match="choose another id"):
        TypeAdapter(ids.NewJobId).validate_python("export")


def test_two_messages_cannot_share_a_subject():
    with pytest.raises(TypeError, match="share"):

        class Another(Message, subject="jobs.submit.{tenant}"):
            pass


def test_options_left_out_keep_the_hash_of_earlier_builds():
    job = SubmitJob(tenant="acme", agent="a", input="why?", options=JobOptions(max_steps=3))
    newer = ({"agent_style": "direct"}, {"tools": ()}, {"memory": False}, {"tags": ("team:a",)})

    options = [JobOptions.model_validate({"max_steps": 3, **one}) for one in newer]
    hashes = [job.model_copy(update={"options": one}).content_hash() for one in options]

    assert job.content_hash() == "09dc6cb16543bc1208d53b6ad244294f"
    assert len({job.content_hash(), *hashes}) == 5


def test_a_content_hash_covers_everything_but_the_id():
    job = SubmitJob(tenant="acme", agent="a", input="x", job_id="1")

    assert job.content_hash() == job.model_copy(update={"job_id": "2"}).content_hash()
    assert job.content_hash() != job.model_copy(update={"user_id": "u"}).content_hash()


@given(st.text(max_size=200))
def test_any_client_id_makes_a_job_id_and_always_the_same(text):
    job_id = ids.job_id_from(text)

    assert ids.job_id_from(text) == job_id == ids.job_id_from(job_id)
    SubmitJob(agent="a", input="x", job_id=job_id)


def test_everything_derived_differs_between_tenants():
    assert ids.trace_id("a", "j") != ids.trace_id("b", "j")
    assert ids.job_span("a", "j") != ids.job_span("b", "j")
    assert ids.tool_key("a", "j", 1, "1") == "a/j/1/1"


@pytest.mark.parametrize(
    ("subject", "allowed"),
    [
        ("_INBOX.abc.1", True),
        ("replies.acme.mine", True),
        ("replies.other.mine", False),
        ("_INBOX.>", False),
        ("_INBOX.*.x", False),
        ("_INBOX.", False),
        ("_INBOXevil.x", False),
        ("events.acme.j", False),
        ("replies.acme.a b", False),
        ("$JS.API.STREAM.DELETE.EVENTS", False),
    ],
)
def test_a_result_goes_only_to_an_inbox_or_the_tenants_replies(subject, allowed):
    assert may_reply_to("acme", subject) is allowed


@pytest.mark.parametrize("text", ["Hello {name}", "Today is {{ date }}", "Use ${KEY}", "Hi <<user>>", "%(who)s"])
def test_instructions_with_a_placeholder_are_refused_with_where_it_belongs(text):
    with pytest.raises(ValidationError, match="Put what changes into the job's input"):
        AgentConfig(instructions=text)


@pytest.mark.parametrize("text", ['Answer as {"a": 1}', "Use `{}` for empty objects", "Costs are 5 % {or so}"])
def test_braces_that_hold_no_name_are_text(text):
    assert AgentConfig(instructions=text).instructions == text


def test_a_hundred_thousand_open_braces_are_read_at_once():
    # Each of them looked for an end up to the end of the line: hours, for all tenants.
    text = "{{" * 50_000

    assert AgentConfig(instructions=text).instructions == text


def test_a_cost_is_rounded_half_to_even_and_unknown_stays_unknown():
    assert usd(Decimal("0.0000000005")) == Decimal("0E-9")
    assert usd(Decimal("0.0000000015")) == Decimal("2E-9")
    assert cost_sum([Decimal("0.1"), Decimal("0.2")]) == Decimal("0.3")
    assert cost_sum([Decimal("0.1"), None]) is None


def test_usage_adds_field_by_field():
    one, two = Usage(input=10, cache_read=4, output=2, reasoning=1), Usage(input=1, output=1)

    assert one + two == Usage(input=11, cache_read=4, output=3, reasoning=1)
    assert (one + two).total == 14


def test_a_validators_message_is_quoted_unchanged():
    with pytest.raises(ValidationError) as wrong:
        BudgetConfig.model_validate({"limit_usd": "1", "window": "job", "hard": False})

    assert explain(wrong.value) == "body: a budget for each job is a cap: it is always hard"
