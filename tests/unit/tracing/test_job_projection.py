"""A log makes the same rows however it is cut into records, and whatever it was interrupted by."""

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import REGISTRY
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from wayline.contracts import events as e
from wayline.contracts import ids
from wayline.contracts.agents import AgentConfig
from wayline.contracts.chat import AssistantMessage, Citation, ToolCall
from wayline.contracts.jobs import Complexity, Failure, Route, SubmitJob, Waiting
from wayline.contracts.money import Usage
from wayline.contracts.tools import Effect
from wayline.journal import view
from wayline.tracing.job_metrics import JobEnded, JobMetrics, ModelEnded, ToolEnded
from wayline.tracing.projection.drafts import STEP_TEXT_MAX
from wayline.tracing.projection.job_projection import JobProjection
from wayline.tracing.views.row_views import job_view

REF = e.SpanRef(trace_id="0" * 32, span_id="0" * 16)
AT = datetime(2026, 1, 1, tzinfo=UTC)
CITED = Citation(document="d", quote="q")
RATIO = "wayline_job_cost_to_predicted_ratio"
SPARED = "wayline_job_tool_tokens_saved_total"


class Hand:
    """Writes events one after another, a second apart."""

    def __init__(self) -> None:
        self.events: list[e.Event] = []

    def say(self, kind: type[e.Event], **fields: Any) -> None:
        seq = len(self.events) + 1
        self.events.append(kind(job_id="j", seq=seq, at=AT + timedelta(seconds=seq), trace=REF, **fields))

    def begin(self, predicted_usd: Decimal | None = None) -> None:
        job = SubmitJob(agent="assistant", input="why?")
        self.say(e.JobSubmitted, tenant="acme", job=job, content_hash="x")
        route = Route(provider="p", model="m", tier="flash", reason="r", estimated_cost_usd=predicted_usd)
        limits = e.Limits(max_steps=5, max_seconds=60, max_output_tokens=100)
        self.say(e.JobRouted, agent="assistant", agent_version=1, config=AgentConfig(), route=route, limits=limits)
        self.say(e.JobClaimed, executor="x", epoch=1, owner="1:1", attempt=1)

    def ask(self, step: int, attempt: int = 1) -> None:
        attempt_id = ids.attempt_id("acme", "j", step, attempt)
        self.say(e.ModelRequested, step=step, attempt=attempt, attempt_id=attempt_id, provider="p", model="m")

    def answer(self, step: int, *calls: str, attempt: int = 1, **more: Any) -> None:
        message = AssistantMessage(text="t", tool_calls=tuple(ToolCall(call=c, tool="search") for c in calls))
        used = {"usage": Usage(input=2, output=1), "cost_usd": Decimal("0.5"), **more}
        attempt_id = ids.attempt_id("acme", "j", step, attempt)
        named = {"step": step, "attempt": attempt, "attempt_id": attempt_id}
        self.say(e.ModelCompleted, **named, **used, message=message, stop_reason="end_turn", duration_ms=500)

    def call(self, step: int, call: str) -> None:
        self.say(e.ToolRequested, step=step, call=call, tool="search", arguments={}, effect=Effect.READ, key=f"k{call}")

    def result(self, step: int, call: str, status: str = "success") -> None:
        self.say(e.ToolCompleted, step=step, call=call, tool="search", status=status, content="c", duration_ms=100)


def long_log() -> list[e.Event]:
    hand = Hand()
    hand.begin()
    hand.ask(1)
    hand.say(e.JobClaimed, executor="y", epoch=2, owner="1:2", attempt=2)
    hand.ask(1, attempt=2)
    hand.answer(1, "1", "2", attempt=2)
    hand.call(1, "1")
    hand.call(1, "2")
    hand.result(1, "2")
    hand.result(1, "1", "failed")
    hand.ask(2)
    hand.answer(2)
    hand.say(e.JobCompleted, answer="because")
    return hand.events


def told(events: list[e.Event], cuts: set[int]) -> dict[str, dict[Any, Any]]:
    """The newest picture of every row, when the log is applied in pieces that end at the cuts."""
    projection = JobProjection("acme", "j")
    tables: dict[str, dict[Any, Any]] = {"jobs": {}, "steps": {}, "ledger": {}, "spans": {}}
    for event in events:
        projection.apply(event)
        if event.seq in cuts or event is events[-1]:
            rows = projection.take_changes().rows
            tables["jobs"].update({row.job_id: row for row in rows.jobs})
            tables["steps"].update({row.step: row for row in rows.steps})
            tables["ledger"].update({row.attempt_id: row for row in rows.ledger})
            tables["spans"].update({(row.span_id, row.start): row for row in rows.spans})
    return tables


JSON = ("usage", "costs", "citations", "waiting_for", "beyond")


def endings() -> list[list[e.Event]]:
    """Logs that end in every way there is, one that waits, and one that goes on."""
    logs: list[list[e.Event]] = [long_log()]
    for kind, fields in (
        (e.JobCompleted, {"answer": "a", "partial": True, "reason": "max_steps", "citations": (CITED,)}),
        (e.JobCancelled, {"reason": "enough"}),
        (e.JobCancelled, {}),
        (e.JobFailed, {"error": Failure(code="lost", message="no luck")}),
        (e.SessionContinued, {"tainted_by": "web_fetch"}),
        (e.JobParked, {"waiting": Waiting(why="budget", wait_id="w"), "signals_seen": 0}),
    ):
        hand = Hand()
        hand.begin(Decimal("0.25"))
        hand.ask(1)
        hand.answer(1)
        hand.say(kind, **fields)
        logs.append(hand.events)
    return logs


@pytest.mark.parametrize("log", endings())
def test_at_every_event_the_jobs_row_equals_its_folded_view(log: list[e.Event]):
    for upto in range(1, len(log) + 1):
        projection = JobProjection("acme", "j")
        for event in log[:upto]:
            projection.apply(event)
        row = projection.take_changes().rows.jobs[0]._asdict()
        row |= {name: orjson.loads(row[name]) for name in JSON if row[name] is not None}
        # No log tells what people think of the job.
        row["feedback"] = None

        shown, seen = job_view(row), view(projection.job)  # pyright: ignore[reportArgumentType]

        # A row has the route's name alone, and not what other jobs cost.
        apart = {"route": None, "total_cost_usd": None}
        assert shown.model_copy(update=apart) == seen.model_copy(update=apart)
        assert (shown.route and shown.route.name) == (seen.route and seen.route.name)


def test_the_jobs_span_records_a_hand_back_with_its_reason():
    hand = Hand()
    hand.begin()
    hand.say(e.JobHandedBack, reason="its executor is being stopped")

    (root,) = (span for span in told(hand.events, set())["spans"].values() if span.name == "invoke_agent assistant")
    noted = json.loads(root.events or "[]")[-1]
    assert (noted["name"], noted["attributes"]) == ("handed back", {"reason": "its executor is being stopped"})


def test_the_jobs_span_records_its_route_with_the_reason():
    hand = Hand()
    hand.begin()
    routed = hand.events[1]
    assert isinstance(routed, e.JobRouted)
    seen = Complexity(score=0.71, level="complex")
    route = routed.route.model_copy(update={"slot": "escalation", "complexity": seen})
    hand.events[1] = routed.model_copy(update={"route": route, "policy": "current/1"})
    hand.say(e.JobCompleted, answer="because")

    (root,) = (span for span in told(hand.events, set())["spans"].values() if span.name == "invoke_agent assistant")

    attributes = {
        name: value for name, value in orjson.loads(root.attributes).items() if name.startswith("wayline.route.")
    }
    assert attributes == {
        "wayline.route.reason": "r",
        "wayline.route.slot": "escalation",
        "wayline.route.tier": "flash",
        "wayline.route.policy": "current/1",
        "wayline.route.complexity": 0.71,
    }


@given(st.sets(st.integers(1, 20)))
def test_where_a_log_is_cut_into_records_changes_no_row(cuts: set[int]):
    assert told(long_log(), cuts) == told(long_log(), set())


@given(st.integers(1, 15))
def test_wherever_a_job_ends_nothing_stays_open(kept: int):
    events = long_log()[:kept]
    if events[-1].type not in e.TERMINAL_TYPES:
        last = events[-1]
        failure = Failure(code="crash_loop", message="gave up")
        events.append(e.JobFailed(job_id="j", seq=last.seq + 1, at=last.at, trace=REF, error=failure))

    tables = told(events, set())

    assert all(row.status != "open" and row.duration_ms is not None for row in tables["spans"].values())
    assert all(row.status != "running" for row in tables["steps"].values())
    assert not any(row.open for row in tables["ledger"].values())


def test_a_calls_span_has_its_slot_and_notes():
    hand = Hand()
    hand.begin()
    hand.ask(1)
    hand.answer(1)
    hand.events[-1] = hand.events[-1].model_copy(update={"notes": ("temperature dropped: the model takes none",)})

    [chat] = [row for row in told(hand.events, set())["spans"].values() if row.name == "chat m"]

    assert '"wayline.slot":"primary"' in (chat.attributes or "")
    assert '"wayline.notes":["temperature dropped: the model takes none"]' in (chat.attributes or "")


def test_a_step_with_several_calls_names_them_all():
    step = told(long_log(), set())["steps"][1]

    assert (step.tool, step.output, step.status) == ("search", "c\n\nc", "failed")
    assert (step.thought, step.duration_ms) == ("t", 7_000)


def test_events_after_an_unreadable_beginning_are_projected():
    """The beginning of a log that nobody could read: what comes after it still has its place."""
    tables = told(long_log()[10:], set())

    assert tables["jobs"]["j"].status == "completed"
    assert {row.name for row in tables["spans"].values()} == {
        "invoke_agent",
        "step 1",
        "execute_tool search",
        "step 2",
        "chat m",
    }


def test_a_calls_span_has_cache_savings_or_the_break_reason():
    hand = Hand()
    hand.begin()
    hand.ask(1)
    hand.answer(1, "1")
    hand.call(1, "1")
    hand.result(1, "1")
    hand.ask(2)
    hand.answer(2)
    asked, completed = hand.events[-2:]
    hand.events[-2:] = [
        asked.model_copy(update={"cache_break": "expired"}),
        completed.model_copy(update={"usage": Usage(input=9, cache_read=8, output=1), "saved_usd": Decimal("0.25")}),
    ]

    spans = told(hand.events, set())["spans"].values()

    first, second = (json.loads(row.attributes) for row in spans if row.name == "chat m")
    assert (first["wayline.cache.hit"], "wayline.cache.break" in first) == (False, False)
    assert second["wayline.cache.hit"] is True
    assert second["gen_ai.usage.cache_read.input_tokens"] == 8
    assert second["wayline.cache.saved_usd"] == "0.25"
    assert second["wayline.cache.break"] == "expired"


def test_tokens_read_from_a_cache_are_counted_by_model():
    def read() -> float:
        labels = {"provider": "chat", "model": "cached"}
        return REGISTRY.get_sample_value("wayline_cache_read_tokens_total", labels) or 0.0

    before = read()

    ended = ModelEnded("chat", "cached", Usage(input=9, cache_read=8), 1)
    JobMetrics().count([ended, ended._replace(usage=Usage(input=9))])

    assert read() - before == 8


def test_tokens_are_counted_by_the_names_of_the_conventions():
    labels = {
        "gen_ai_provider_name": "chat",
        "gen_ai_request_model": "counted",
        "gen_ai_token_modality": "unknown",
    }
    used = Usage(input=90, output=70, cache_read=8, cache_write_5m=20, cache_write_1h=3, reasoning=40)

    JobMetrics().count([ModelEnded("chat", "counted", used, 1)])

    kinds = ("input", "output", "cache_read_input", "cache_write_input", "reasoning_output")
    counted = [
        REGISTRY.get_sample_value(f"gen_ai_client_inference_usage_{kind}_tokens_total", labels) for kind in kinds
    ]
    assert counted == [90, 70, 8, 23, 40]


@pytest.mark.parametrize(("job_id", "told"), [("j-7", {"job_id": "j-7"}), ("j" * 128, {})])
def test_a_measured_call_leads_to_its_trace_and_job(job_id: str, told: dict[str, str]):
    labels, trace_id = {"gen_ai_provider_name": "chat", "gen_ai_request_model": f"shown-{len(job_id)}"}, "a" * 32
    ended = ModelEnded("chat", labels["gen_ai_request_model"], None, 1.5, first_token_s=0.2)
    job_metrics = JobMetrics()

    job_metrics.count([ended], trace_id=trace_id, job_id=job_id)
    page = generate_latest(REGISTRY).decode()

    families = {family.name: family for family in text_string_to_metric_families(page)}
    for name in ("gen_ai_client_operation_duration_seconds", "gen_ai_client_operation_time_to_first_chunk_seconds"):
        samples = [one for one in families[name].samples if one.exemplar and labels.items() <= one.labels.items()]
        assert [one.exemplar.labels for one in samples if one.exemplar] == [{"trace_id": trace_id, **told}]


def test_invented_model_names_create_a_bounded_number_of_labels():
    names = [f"junk-{n}" for n in range(5)]

    ended = [ModelEnded(f"from-{name}", name, Usage(input=9, cache_read=1), 1) for name in names]
    JobMetrics(own_models_max=2).count(ended)

    [family] = [each for each in REGISTRY.collect() if each.name == "wayline_cache_read_tokens"]
    labels = [(sample.labels["provider"], sample.labels["model"]) for sample in family.samples]
    junk = {(provider, model) for provider, model in labels if provider == "other" and "cached" not in model}
    assert junk == {("other", "junk-0"), ("other", "junk-1"), ("other", "other")}


def test_a_step_names_the_tool_that_was_called_through_another():
    hand = Hand()
    hand.begin()
    hand.ask(1)
    hand.answer(1, "1")
    door = ToolCall(call="1", tool="use_tool", arguments={"name": "search", "arguments": {}})
    hand.events[-1] = hand.events[-1].model_copy(update={"message": AssistantMessage(tool_calls=(door,))})
    hand.call(1, "1")
    hand.result(1, "1")
    hand.say(e.JobCompleted, answer="because")

    assert told(hand.events, set())["steps"][1].tool == "search"


def test_a_lost_call_is_one_span_and_one_unsettled_entry():
    hand = Hand()
    hand.begin()
    hand.ask(1)
    hand.say(e.JobClaimed, executor="y", epoch=2, owner="1:2", attempt=2)
    lost = Failure(code=e.LOST, message="gone")
    open_ = e.Bounds(lower_usd=Decimal(0), upper_usd=Decimal(1))
    attempt_id = ids.attempt_id("acme", "j", 1, 1)
    hand.say(e.ModelFailed, step=1, attempt=1, attempt_id=attempt_id, error=lost, retryable=True, unsettled=open_)
    hand.ask(1, attempt=2)
    hand.answer(1, attempt=2)
    hand.say(e.JobCompleted, answer="because")

    tables = told(hand.events, set(range(20)))

    chats = [row for row in tables["spans"].values() if row.name == "chat m"]
    assert [(row.status, "lost" in (row.attributes or "")) for row in chats] == [("error", True), ("ok", False)]
    assert [(row.attempt_id[-2:], row.settled, row.cost_usd) for row in tables["ledger"].values()] == [
        ("m1", False, None),
        ("m2", True, Decimal("0.5")),
    ]


def test_an_answer_without_usage_is_unsettled_and_in_no_sum():
    hand = Hand()
    hand.begin()
    hand.ask(1)
    bounds = e.Bounds(lower_usd=Decimal("0.1"), upper_usd=Decimal(1))
    hand.answer(1, usage=Usage(), cost_usd=None, unsettled=bounds)
    hand.say(e.JobCompleted, answer="t")

    tables = told(hand.events, set())

    [entry], [chat] = tables["ledger"].values(), [row for row in tables["spans"].values() if row.name == "chat m"]
    assert (entry.settled, entry.open, entry.cost_usd) == (False, False, None)
    assert (entry.lower_usd, entry.upper_usd) == (bounds.lower_usd, bounds.upper_usd)
    attributes = json.loads(chat.attributes or "")
    assert (attributes["wayline.cost.lower_usd"], attributes["wayline.cost.upper_usd"]) == ("0.1", "1")
    assert "wayline.cache.hit" not in attributes and "gen_ai.usage.input_tokens" not in attributes
    [job] = tables["jobs"].values()
    assert (job.cost_usd, job.tokens) == (0, 0)


def asked_aside(*ends: tuple[type[e.Event], dict[str, Any]]) -> list[e.Event]:
    """The log of a job that first asked what type of task it is."""
    named = {"purpose": "classification", "attempt_id": ASIDE}
    hand = Hand()
    hand.begin()
    hand.say(e.AuxiliaryRequested, **named, provider="p", model="small", worst_usd=Decimal(1))
    for kind, fields in ends:
        aside = named if kind in (e.AuxiliaryCompleted, e.AuxiliaryFailed) else {}
        hand.say(kind, **aside, **fields)
    hand.ask(1)
    hand.answer(1)
    hand.say(e.JobCompleted, answer="because")
    return hand.events


ASIDE = ids.aux_id("acme", "j", 0, 1)
ANSWERED = (
    (
        e.AuxiliaryCompleted,
        {"provider": "p", "model": "small", "usage": Usage(input=9, output=1), "cost_usd": Decimal("0.25")},
    ),
    (e.TaskClassified, {"task_type": "negotiation"}),
    (
        e.JobRerouted,
        {
            "cause": "classification",
            "route": Route(provider="p", model="n", tier="premium", reason="it is hard", task_type="negotiation"),
        },
    ),
)
LOST_ASIDE = (
    (
        e.AuxiliaryFailed,
        {
            "error": Failure(code=e.LOST, message="gone"),
            "unsettled": e.Bounds(lower_usd=Decimal(0), upper_usd=Decimal(1)),
        },
    ),
)


UNCOUNTED_ASIDE = (
    (
        e.AuxiliaryCompleted,
        {
            "provider": "p",
            "model": "small",
            "cost_usd": None,
            "unsettled": e.Bounds(lower_usd=Decimal("0.1"), upper_usd=Decimal(1)),
        },
    ),
)
COUNTED_FAILURE = (
    (
        e.AuxiliaryFailed,
        {
            "error": Failure(code="server_error", message="500"),
            "usage": Usage(input=9, output=1),
            "cost_usd": Decimal("0.25"),
        },
    ),
)


@given(st.sets(st.integers(1, 20)), st.sampled_from([ANSWERED, LOST_ASIDE, UNCOUNTED_ASIDE, COUNTED_FAILURE]))
def test_batch_boundaries_change_no_row_of_auxiliary_calls(cuts: set[int], ends: Any):
    assert told(asked_aside(*ends), cuts) == told(asked_aside(*ends), set())


def test_an_auxiliary_call_is_one_span_and_one_entry():
    tables = told(asked_aside(*ANSWERED), set(range(20)))

    [span] = [row for row in tables["spans"].values() if row.span_id == ids.aux_span("acme", "j", ASIDE)]
    assert (span.name, span.status, span.cost_usd, span.start) == (
        "classification small",
        "ok",
        Decimal("0.25"),
        AT + timedelta(seconds=4),
    )
    assert span.parent_span_id == ids.job_span("acme", "j")
    entry = tables["ledger"][ASIDE]
    assert (entry.kind, entry.purpose, entry.model, entry.settled) == ("aux", "classification", "small", True)
    assert tables["jobs"]["j"].cost_usd == Decimal("0.75")
    [root] = [row for row in tables["spans"].values() if row.name == "invoke_agent assistant"]
    attributes = json.loads(root.attributes)
    assert (attributes["wayline.route.task_type"], attributes["wayline.route.tier"]) == ("negotiation", "premium")
    assert [(noted["name"], noted.get("attributes")) for noted in json.loads(root.events or "[]")][1:] == [
        ("classified", {"task_type": "negotiation"}),
        ("rerouted", {"cause": "classification", "model": "p/n", "reason": "it is hard"}),
    ]


def test_a_lost_auxiliary_call_is_unsettled_once():
    tables = told(asked_aside(*LOST_ASIDE), set(range(20)))

    entry = tables["ledger"][ASIDE]
    assert (entry.settled, entry.open, entry.lower_usd, entry.upper_usd) == (False, False, Decimal(0), Decimal(1))
    [span] = [row for row in tables["spans"].values() if row.span_id == ids.aux_span("acme", "j", ASIDE)]
    assert (span.status, span.cost_usd) == ("error", None)


def test_an_auxiliary_call_is_summed_wherever_its_usage_is_known():
    uncounted, counted = (told(asked_aside(*ends), set()) for ends in (UNCOUNTED_ASIDE, COUNTED_FAILURE))

    entry = uncounted["ledger"][ASIDE]
    assert (entry.settled, entry.lower_usd, entry.upper_usd) == (False, Decimal("0.1"), Decimal(1))
    assert uncounted["jobs"]["j"].cost_usd == Decimal("0.5")
    entry = counted["ledger"][ASIDE]
    assert (entry.settled, entry.cost_usd) == (True, Decimal("0.25"))
    assert counted["jobs"]["j"].cost_usd == Decimal("0.75")


def test_an_auxiliary_call_never_made_is_only_noted():
    hand = Hand()
    hand.begin()
    error = Failure(code="not_made", message="p/small keeps failing")
    hand.say(e.AuxiliaryFailed, purpose="compaction", attempt_id="acme/j/4/a1", error=error)
    hand.say(e.JobCompleted, answer="because")

    tables = told(hand.events, set())

    assert tables["ledger"] == {}
    [root] = tables["spans"].values()
    noted = {"name": "compaction not made", "attributes": {"reason": "p/small keeps failing"}}
    assert noted.items() <= json.loads(root.events or "[]")[-1].items()


@given(st.integers(1, 6))
def test_wherever_a_job_ends_no_call_beside_its_conversation_stays_open(kept: int):
    events = asked_aside(*ANSWERED)[:kept]
    failure = Failure(code="crash_loop", message="gave up")
    events.append(e.JobFailed(job_id="j", seq=kept + 1, at=events[-1].at, trace=REF, error=failure))

    tables = told(events, set())

    assert all(row.status != "open" for row in tables["spans"].values())
    assert [(row.open, row.settled) for row in tables["ledger"].values()] in ([], [(False, kept > 4)])


@pytest.mark.parametrize(("spared", "counted"), [(900, 900), (-300, 0)])
def test_answered_calls_count_the_definitions_they_were_spared(spared: int, counted: int):
    hand, projection = Hand(), JobProjection("acme", "j")
    hand.begin()
    for step, tokens in ((1, spared), (2, 700)):
        named = {"step": step, "attempt": 1, "attempt_id": ids.attempt_id("acme", "j", step, 1)}
        hand.say(e.ModelRequested, **named, provider="p", model="m", deferred_tokens=tokens)
        if step == 1:
            hand.answer(1, "1")
            hand.result(1, "1")
    hand.say(e.JobCompleted, answer="so", steps=1)
    for event in hand.events:
        projection.apply(event)
    before = REGISTRY.get_sample_value(SPARED, {"agent": "assistant"}) or 0
    changes = projection.take_changes()

    JobMetrics().count(changes.facts)

    assert (REGISTRY.get_sample_value(SPARED, {"agent": "assistant"}) or 0) - before == counted
    assert orjson.loads(changes.rows.jobs[-1].costs or "{}")["tool_tokens_saved"] == spared


@pytest.mark.parametrize(
    ("predicted", "actual", "steps", "told"),
    [
        ("0.02", "0.03", 1, [1.5]),
        ("0.02", None, 1, []),
        (None, "0.03", 1, []),
        ("0", "0", 1, []),
        ("0.02", "0", 0, []),
    ],
)
def test_the_cost_metric_compares_cost_with_prediction(predicted, actual, steps, told):
    hand, projection = Hand(), JobProjection("acme", "j")
    hand.begin(predicted and Decimal(predicted))
    hand.say(e.JobCompleted, answer="so", steps=steps, cost_usd=actual and Decimal(actual))
    for event in hand.events:
        projection.apply(event)
    before = {name: REGISTRY.get_sample_value(f"{RATIO}_{name}", {"tier": "flash"}) or 0 for name in ("sum", "count")}

    JobMetrics().count(projection.take_changes().facts)

    after = {name: REGISTRY.get_sample_value(f"{RATIO}_{name}", {"tier": "flash"}) or 0 for name in before}
    assert (after["sum"] - before["sum"], after["count"] - before["count"]) == (sum(told), len(told))


def test_invented_agents_and_tools_make_a_bounded_number_of_labels():
    job_metrics = JobMetrics(names_max=4, names_per_tenant_max=2)
    for n in range(50):
        facts = [ToolEnded(f"junk-tool-{n}", "read", "ok", 1), JobEnded("completed", f"junk-agent-{n}", 1)]
        job_metrics.count(facts, tenant="hostile")
    job_metrics.count([ToolEnded("own-tool", "read", "ok", 1), JobEnded("completed", "own-agent", 1)], tenant="acme")

    counted = {
        (family.name, sample.labels.get("tool") or sample.labels["agent"]): sample.value
        for family in REGISTRY.collect()
        for sample in family.samples
        if sample.name in ("wayline_tool_calls_total", "wayline_jobs_ended_total")
        and (sample.labels.get("tool") or sample.labels["agent"]).startswith(("junk-", "own-", "other"))
    }
    for kind, name in (("wayline_tool_calls", "tool"), ("wayline_jobs_ended", "agent")):
        named = {of for metric, of in counted if metric == kind}
        assert named == {f"junk-{name}-0", f"junk-{name}-1", f"own-{name}", "other"}
        assert counted[kind, "other"] == 48


def test_a_calls_span_has_only_the_token_counts_given():
    hand = Hand()
    hand.begin()
    hand.ask(1)
    hand.answer(1, "1", usage=Usage(input=20, cache_read=4, cache_write_5m=1, cache_write_1h=2, output=8, reasoning=3))
    hand.ask(2)
    hand.answer(2)

    spans = [span for span in told(hand.events, set())["spans"].values() if span.name == "chat m"]

    attributes = [
        {k: v for k, v in orjson.loads(span.attributes).items() if k.startswith("gen_ai.usage")} for span in spans
    ]
    assert attributes == [
        {
            "gen_ai.usage.input_tokens": 20,
            "gen_ai.usage.output_tokens": 8,
            "gen_ai.usage.cache_read.input_tokens": 4,
            "gen_ai.usage.cache_write.input_tokens": 3,
            "gen_ai.usage.cache_creation.input_tokens": 3,
            "gen_ai.usage.reasoning.output_tokens": 3,
        },
        {"gen_ai.usage.input_tokens": 2, "gen_ai.usage.output_tokens": 1},
    ]


def test_too_long_arguments_keep_the_beginning_of_their_json():
    hand = Hand()
    hand.begin()
    hand.ask(1)
    hand.answer(1)
    long = {"q": "x" * STEP_TEXT_MAX}
    message = AssistantMessage(tool_calls=(ToolCall(call="1", tool="search", arguments=long),))
    hand.events[-1] = hand.events[-1].model_copy(update={"message": message})

    step = told(hand.events, set())["steps"][1]

    kept = orjson.loads(step.input)
    assert kept == f'{{"q":"{"x" * (STEP_TEXT_MAX - 6)}… (8 characters more in the job\'s log)'
    assert [call["input"] for call in orjson.loads(step.calls)] == [kept]


def test_a_step_of_a_program_holds_its_calls_below_it():
    hand = Hand()
    hand.begin()
    hand.ask(1)
    hand.answer(1, "1")
    program = {"step": 1, "effect": Effect.READ, "arguments": {}}
    hand.say(e.ToolRequested, call="1", tool="run_code", key="k1", **program)
    hand.say(e.ToolRequested, call="c1", tool="search", key="kc1", program="1", **program)
    hand.result(1, "c1", "failed")
    hand.say(e.ToolCompleted, step=1, call="1", tool="run_code", status="success", content="7")
    hand.ask(2)
    hand.answer(2)
    hand.say(e.JobCompleted, answer="because")

    tables = told(hand.events, set())

    spans = {span_id: row for (span_id, _), row in tables["spans"].items()}
    step, below = spans[ids.step_span("acme", "j", 1)], spans[ids.tool_span("acme", "j", 1, "c1")]
    assert json.loads(step.attributes)["wayline.step.method"] == "code"
    assert json.loads(spans[ids.step_span("acme", "j", 2)].attributes)["wayline.step.method"] == "standard"
    assert below.parent_span_id == ids.tool_span("acme", "j", 1, "1")
    assert [call["call"] for call in json.loads(tables["steps"][1].calls)] == ["1", "c1"]
    assert tables["steps"][1].status == "success", "what a program made of a failed call is its own matter"


def test_a_fork_inside_a_program_has_a_span_for_it():
    hand = Hand()
    hand.begin()
    called = {"step": 1, "effect": Effect.READ, "arguments": {}, "program": "1"}
    hand.say(e.ToolRequested, call="c2", tool="search", key="kc2", **called)
    hand.result(1, "c2")
    hand.say(e.ToolCompleted, step=1, call="1", tool="run_code", status="success", content="c", duration_ms=100)

    spans = {span_id: row for (span_id, _), row in told(hand.events, set())["spans"].items()}

    program = spans[ids.tool_span("acme", "j", 1, "1")]
    assert program.parent_span_id == ids.step_span("acme", "j", 1)
    assert spans[ids.tool_span("acme", "j", 1, "c2")].parent_span_id == program.span_id
