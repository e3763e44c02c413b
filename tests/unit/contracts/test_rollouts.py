"""Two builds on one bus: what is read may say more than this one knows, what is asked for may not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from wayline.contracts import events as e
from wayline.contracts.agents import AgentConfig, PutAgent, Routing
from wayline.contracts.base import Message
from wayline.contracts.budgets import BudgetConfig, PutBudget
from wayline.contracts.errors import InvalidMessage
from wayline.contracts.jobs import JobOptions, PlanJob, SubmitJob
from wayline.contracts.knowledge import Filter, SearchKnowledge

JOB = SubmitJob(tenant="acme", agent="a", input="why?", options=JobOptions(max_steps=3))
TRACE = {"trace_id": "a" * 32, "span_id": "b" * 16}
STAMP = {"job_id": "j1", "seq": 1, "at": "2026-05-01T00:00:00Z", "trace": TRACE}
SUBMITTED = {"type": "job.submitted", **STAMP, "tenant": "acme", "content_hash": "c"}
ROUTED = {
    "type": "job.routed",
    **STAMP,
    "agent": "a",
    "agent_version": 1,
    "route": {"provider": "p", "model": "m", "tier": "flash", "reason": "r"},
    "limits": {"max_steps": 1, "max_seconds": 1, "max_output_tokens": 1},
}
LATER = {"of_a_later_build": True}


def test_unknown_fields_of_a_newer_builds_log_are_ignored():
    options = {"max_steps": 3, **LATER}
    submitted = e.read_event({**SUBMITTED, "job": {"agent": "a", "input": "why?", "options": options, **LATER}})
    routed = e.read_event({**ROUTED, "config": {"instructions": "Be kind.", "routing": {"mode": "locked", **LATER}}})

    assert isinstance(submitted, e.JobSubmitted) and submitted.job == JOB.model_copy(update={"tenant": ""})
    expected = AgentConfig(instructions="Be kind.", routing=Routing(mode="locked"))
    assert isinstance(routed, e.JobRouted) and routed.config == expected


@pytest.mark.parametrize(
    ("kind", "body", "field"),
    [
        (SubmitJob, {"agent": "a", "input": "x", **LATER}, "of_a_later_build"),
        (SubmitJob, {"agent": "a", "input": "x", "options": LATER}, "options.of_a_later_build"),
        (PlanJob, {"job": {"agent": "a", "input": "x", "options": LATER}}, "job.options.of_a_later_build"),
        (PutAgent, {"name": "a", "config": LATER}, "config.of_a_later_build"),
        (PutAgent, {"name": "a", "config": {"routing": LATER}}, "config.routing.of_a_later_build"),
        (PutBudget, {"name": "a", "config": {"limit_usd": "1", **LATER}}, "config.of_a_later_build"),
        (SearchKnowledge, {"query": "x", "filter": LATER}, "filter.of_a_later_build"),
    ],
)
def test_an_unknown_request_field_is_refused_by_name(kind: type[Message], body: dict[str, Any], field: str):
    with pytest.raises(InvalidMessage, match=f"{field}: Extra inputs"):
        kind.from_wire(json.dumps(body).encode(), kind.listens().replace("*", "acme"))


@pytest.mark.parametrize(
    ("message", "fields"),
    [
        (JOB, {"agent": "a", "input": "why?", "options": {"max_steps": 3}}),
        (
            PlanJob(tenant="acme", job=JOB.model_copy(update={"tenant": ""})),
            {"job": {"agent": "a", "input": "why?", "options": {"max_steps": 3}}},
        ),
        (
            PutAgent(tenant="acme", name="a", config=AgentConfig(routing=Routing(mode="locked"))),
            # Beside the configuration: an older build passes over it.
            {"name": "a", "config": {"routing": {"mode": "locked"}}, "by": ""},
        ),
        (
            PutBudget(tenant="acme", name="a", config=BudgetConfig.model_validate({"limit_usd": "1"})),
            {"name": "a", "config": {"limit_usd": "1"}},
        ),
        (
            SearchKnowledge(tenant="acme", query="x", top_k=3, filter=Filter(document_ids=("d",))),
            {
                "query": "x",
                "mode": "hybrid",
                "top_k": 3,
                "vector_weight": None,
                "min_score": None,
                "filter": {"document_ids": ["d"]},
                # No part of the filter: an older build passes over these.
                "caller_pays": False,
                "syntax": "web",
                "fold_duplicates": True,
                "join_neighbours": False,
                "audience": None,
            },
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Message) else "",
)
def test_a_message_carries_only_the_fields_that_were_set(message: Message, fields: dict[str, Any]):
    """A field that nobody has set is not on the wire, so an older router takes a newer gateway's jobs."""
    body = json.loads(message.to_wire())

    assert body == fields
    assert type(message).from_wire(message.to_wire(), message.subject) == message
