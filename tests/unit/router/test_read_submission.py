"""What is read of a submission: its job's id, its caller, and what is left of one that is refused."""

import json
from dataclasses import replace

import pytest

from wayline.chassis import Delivery
from wayline.contracts import ids
from wayline.contracts.agents import AgentConfig
from wayline.contracts.errors import InvalidMessage
from wayline.contracts.jobs import JobOptions, SubmitJob, SubmittedBy
from wayline.router.admission.read_submission import (
    caller_of,
    job_id_of,
    may_hide_others,
    read_partial,
    submitted_by,
)
from wayline.routing import choose_limits


def delivery(body: bytes = b"{}", sequence: int = 4, stored_ns: int = 99, **headers: str) -> Delivery:
    return Delivery("SUBMIT", "router", sequence, 1, "jobs.submit.acme", stored_ns, headers, body)


def named(msg_id: str) -> Delivery:
    return Delivery("SUBMIT", "router", 4, 1, "jobs.submit.acme", 99, {"Nats-Msg-Id": msg_id}, b"{}")


def test_the_bodys_id_comes_before_the_messages_own():
    assert job_id_of("mine", delivery()) == "mine"
    assert job_id_of(None, named("theirs")) == "theirs"
    assert job_id_of("mine", named("mine")) == "mine"


def test_two_different_ids_are_refused():
    with pytest.raises(InvalidMessage, match="'theirs' but job_id in the body is 'mine'"):
        job_id_of("mine", named("theirs"))


def test_a_message_id_may_name_the_tenant_beside_the_bodys_id():
    assert job_id_of("order-1", named("acme/order-1")) == "order-1"
    with pytest.raises(InvalidMessage):
        job_id_of("order-1", named("globex/order-1"))


def test_a_message_id_without_tenant_or_body_may_hide_others():
    assert may_hide_others(None, named("order-1"))
    assert may_hide_others(None, named("globex/order-1"))
    assert not may_hide_others(None, named("acme/order-1"))
    assert not may_hide_others("order-1", named("order-1"))
    assert not may_hide_others(None, delivery())


def test_a_derived_id_is_stable_over_redeliveries_and_unique():
    first = job_id_of(None, delivery())
    again = Delivery("SUBMIT", "router", 4, 7, "jobs.submit.acme", 99, {}, b"{}")

    assert job_id_of(None, again) == first
    assert job_id_of(None, delivery(sequence=5)) != first
    assert job_id_of(None, delivery(stored_ns=100)) != first, "a recreated stream counts from one again"


def test_a_span_of_the_jobs_own_trace_is_not_a_caller():
    ours = f"00-{ids.trace_id('acme', 'j1')}-{'ab' * 8}-01"
    theirs = f"00-{'cd' * 16}-{'ab' * 8}-01"

    assert caller_of(delivery(traceparent=ours), "acme", "j1") is None
    assert caller_of(delivery(traceparent=theirs), "acme", "j1") == theirs
    handed_on = Delivery("S", "r", 1, 1, "s", 0, {"traceparent": ours, "Wayline-Caller": theirs}, b"")
    assert caller_of(handed_on, "acme", "j1") == theirs


@pytest.mark.parametrize(
    ("body", "job_id", "agent", "has_log"),
    [
        (b'{"job_id":"j1","agent":"a","options":{"nope":1}}', "j1", "a", True),
        (b'{"job_id":"j1","agent":7}', "j1", "unreadable", True),
        (b'{"job_id":"j1","agent":"a\\u0000"}', "j1", "unreadable", True),
        (b'{"agent":"a","inptu":""}', "derived", "a", True),
        (b'{"job_id":"not allowed!"}', "derived", "unreadable", True),
        (b"nonsense", "derived", "unreadable", False),
        (b"[1]", "derived", "unreadable", False),
    ],
)
def test_what_can_be_read_of_an_invalid_submission_is_kept(body, job_id, agent, has_log):
    found = read_partial(delivery(body))

    assert found.job_id == (job_id_of(None, delivery(body)) if job_id == "derived" else job_id)
    assert (found.job.agent, found.has_log) == (agent, has_log)


@pytest.mark.parametrize(("user", "kept"), [("ann", "ann"), ("a\0b", None), ("x" * 129, None), (7, None), ("", None)])
def test_an_invalid_submission_keeps_its_user_where_that_is_readable(user: object, kept: str | None):
    body = json.dumps({"job_id": "j1", "agent": 7, "user_id": user}).encode()

    assert read_partial(delivery(body)).job.user_id == kept


def test_of_a_valid_submission_that_is_refused_all_is_kept():
    body = b'{"agent":"a","input":[{"type":"text","text":"why?"}],"user_id":"ann","options":{"lane":"batch"}}'

    found = read_partial(replace(named("j1"), body=body))

    assert (found.job, found.job_id) == (SubmitJob.from_wire(body, "jobs.submit.acme"), "j1")


def test_a_refused_submission_keeps_no_name_that_no_table_takes():
    body = json.dumps({"agent": "a\0", "input": "x", "user_id": "ann\0", "session_id": "s1"}).encode()

    job = read_partial(delivery(body)).job

    assert (job.agent, job.user_id, job.session_id) == ("unreadable", None, "s1")


def test_a_word_of_the_apis_paths_names_no_new_job():
    body = b'{"job_id":"export","agent":"a","input":"x"}'

    with pytest.raises(InvalidMessage, match="choose another id"):
        job_id_of("export", delivery(body))
    assert read_partial(delivery(body)).job_id == job_id_of(None, delivery(body))


def test_limits_are_the_jobs_own_where_it_has_them():
    limits = choose_limits(JobOptions(max_steps=2), AgentConfig(max_steps=9, max_seconds=5))

    assert (limits.max_steps, limits.max_seconds) == (2, 5)


@pytest.mark.parametrize(
    ("told", "read"),
    [
        ('{"how": "openai", "name": "shop", "key_id": "ab"}', SubmittedBy(how="openai", name="shop", key_id="ab")),
        ('{"how": "schedule", "name": "morning"}', SubmittedBy(how="bus")),
        ('{"how": "parent"}', SubmittedBy(how="bus")),
        ("no JSON", SubmittedBy(how="bus")),
        ("", SubmittedBy(how="bus")),
    ],
)
def test_only_a_door_may_say_who_submitted_a_job(told: str, read: SubmittedBy):
    said = replace(delivery(), headers={"Wayline-Submitted-By": told})

    assert submitted_by(said) == read
