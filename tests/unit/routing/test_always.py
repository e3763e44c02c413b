"""What holds for every decision about a model, whatever is asked."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from wayline.contracts.agents import AgentConfig, Routing
from wayline.contracts.chat import Attachment, FilePart, ImagePart, TextPart
from wayline.contracts.errors import Reject
from wayline.contracts.events import JobRouted, Observed, SpanRef, ToolsObserved, Warm
from wayline.contracts.jobs import JobOptions, SubmitJob
from wayline.router.models.attachments import naming
from wayline.routing import (
    Decision,
    Policy,
    RoutingInput,
    choose_again,
    choose_limits,
    choose_route,
    current_policy,
    named_policy,
)

from .routed import (
    CARDS,
    EASY,
    HARD,
    MIDDLING,
    OFFLINE,
    PROOF,
)

text = st.one_of(st.text(max_size=60), st.sampled_from([EASY, MIDDLING, HARD, PROOF]))
names = st.sampled_from(["a/flash", "a/premium", "b/seeing", "chat/mine", "flash", "standard", "premium", "reasoning"])
maybe = st.none() | names
seldom = st.sampled_from([None] * 9 + ["a/premium"])
routings = st.builds(
    Routing,
    mode=st.sampled_from(["auto", "auto", "auto", "locked"]),
    fast=maybe,
    primary=maybe,
    escalation=maybe,
    reasoning=maybe,
    fallbacks=st.lists(names, max_size=2).map(tuple),
    budget_aware=st.booleans(),
)
tasks = st.none() | st.sampled_from(["sentiment", "drafting", "negotiation", "juggling"])
observations = st.builds(
    Observed,
    model=names,
    slot=st.sampled_from(["fast", "primary", "escalation", "reasoning"]),
    jobs=st.integers(3, 50),
    calls=st.integers(1, 20),
    output_tokens=st.integers(0, 5_000),
    longest_tokens=st.integers(0, 20_000),
)
tools_observed = st.builds(ToolsObserved, count=st.integers(0, 99), tokens=st.integers(0, 50_000))
dollars = st.none() | st.decimals(min_value=0, max_value=1, places=4)


def described(document_id: str, media_type: str, **more: Any) -> Attachment:
    about = {"name": document_id, "sha256": "a" * 64, "size_bytes": 400}
    return Attachment(document_id=document_id, media_type=media_type, **about, **more)


DESCRIBED = {
    "d": described("d", "image/png", width=280, height=560),
    "p": described("p", "text/plain", text_bytes=40_000),
}


@st.composite
def inputs(draw: st.DrawFn) -> dict[str, Any]:
    parts = draw(text) if draw(st.booleans()) else (TextPart(text=draw(text)), ImagePart(document_id="d"))
    pinned = draw(st.sampled_from([(), (FilePart(document_id="p"),)]))
    job = SubmitJob(
        agent="a",
        input=parts,
        options=JobOptions(task_type=draw(tasks), budget_usd=draw(dollars), model=draw(seldom)),
    )
    config = AgentConfig(
        model=draw(seldom),
        routing=draw(routings),
        max_steps=draw(st.integers(1, 1_000)),
        classify=draw(st.booleans()),
        pinned=pinned,
    )
    known = tuple(DESCRIBED[part.document_id] for part in naming((*pinned, *job.parts())))
    inputs = RoutingInput(
        job,
        config,
        left_usd=draw(dollars),
        cap_usd=draw(dollars),
        warm=draw(st.none() | st.builds(Warm, model=names, prefix_tokens=st.integers(0, 100_000))),
        attachments=known if draw(st.booleans()) else (),
        observed=tuple(draw(st.lists(observations, max_size=4, unique_by=lambda one: (one.model, one.slot)))),
        tools=draw(st.none() | tools_observed),
    )
    return {
        "inputs": inputs,
        "cards": draw(st.just(CARDS) | st.lists(st.sampled_from(CARDS), unique_by=lambda c: c.name).map(tuple)),
        "away": draw(st.dictionaries(st.sampled_from([each.name for each in CARDS]), st.just("keeps failing"))),
        "default_model": draw(st.sampled_from([OFFLINE, "chat/mine"])),
    }


def as_recorded(inputs: RoutingInput, decision: Decision) -> JobRouted:
    """What the log says of a decision, read again."""
    job, config = inputs.job, inputs.config
    recorded = JobRouted(
        job_id="j1",
        seq=2,
        at=datetime(2026, 11, 22, tzinfo=UTC),
        trace=SpanRef(trace_id="t", span_id="s"),
        agent="a",
        agent_version=1,
        config=config,
        route=decision.route,
        limits=choose_limits(job.options, config, steps_level=inputs.steps_level).model_copy(
            update={"budget_usd": inputs.cap_usd}
        ),
        candidates=decision.candidates,
        policy=decision.policy,
        left_usd=inputs.left_usd,
        warm=inputs.warm,
        attachments=inputs.attachments,
        away=decision.away,
    )
    return JobRouted.model_validate_json(recorded.model_dump_json())


@settings(deadline=None)
@given(inputs())
def test_a_decision_is_repeatable_or_a_named_refusal(given_):
    try:
        decision = choose_route(**given_)
    except Reject as told:
        assert told.code in {"invalid_model", "empty_tier", "model_unfit"}
        return

    assert decision == choose_route(**given_)
    route, candidates = decision.route, decision.candidates
    assert candidates.card(route.name) is not None
    assert all(candidates.card(name) for name in (*candidates.slots.values(), *candidates.fallbacks))
    assert route.reason and "\n" not in route.reason and not route.reason.endswith(".")


@settings(deadline=None)
@given(inputs())
def test_a_recorded_decision_comes_out_the_same_again(given_):
    try:
        decision = choose_route(**given_)
    except Reject:
        return
    inputs = given_["inputs"]
    job = inputs.job
    read = as_recorded(inputs, decision)

    assert choose_again(job, read, policy=current_policy()).route == decision.route
    for label, meant in decision.candidates.tasks.items():
        assert choose_again(job, read, policy=current_policy(), task_type=label).route == (meant or decision.route)
    for other in ("all-standard", "all-premium"):
        assert choose_again(job, read, policy=policy_named(other), task_type="negotiation").route.reason


def policy_named(name: str) -> Policy:
    policy = named_policy(name)
    assert policy is not None
    return policy


def test_a_repeated_decision_uses_the_observations_recorded_then():
    job = SubmitJob(agent="a", input=PROOF)
    config = AgentConfig(routing=Routing(reasoning="reasoning"))
    dear = Observed(model="a/thinker", slot="reasoning", jobs=9, calls=5, output_tokens=900, longest_tokens=1_000)
    inputs = RoutingInput(
        job, config, cap_usd=Decimal("0.10"), observed=(dear,), tools=ToolsObserved(count=9, tokens=900)
    )

    decision = choose_route(inputs, cards=CARDS, default_model=OFFLINE)
    again = choose_again(job, as_recorded(inputs, decision), policy=current_policy())

    assert decision.route.slot == "escalation", "nine jobs have shown that the reasoning slot costs too much"
    assert again.route == decision.route
