"""The log becomes a tree, steps and money, each event once."""

import dataclasses
from datetime import timedelta
from decimal import Decimal
from typing import Any

from nats.js.api import ConsumerConfig
from prometheus_client import REGISTRY

from wayline.chassis.topology import EVENTS_TRACING
from wayline.contracts import ids
from wayline.contracts.jobs import Status
from wayline.contracts.traces import GetSteps, JobPage, ListJobs, StepList
from wayline.tracing.adapters.tables import PostgresTables
from wayline.tracing.consume.projector import Projector, parse
from wayline.tracing.consume.trace_tenants import TraceTenants
from wayline.tracing.projection.job_projection import JobProjection

from .conftest import AS_RECORD, QUICK, Log, Start, TracingPlatform, flat, outline

TABLES = ("jobs", "steps", "ledger", "spans")


async def everything(platform: TracingPlatform) -> dict[str, list[dict[str, Any]]]:
    """All rows of all tables, in an order of their own."""
    return {name: sorted(await platform.rows(f"SELECT * FROM {name}"), key=str) for name in TABLES}


async def deliver_again(platform: TracingPlatform) -> None:
    """Forget what was acked: every record of the stream comes once more."""
    await platform.bus.js.delete_consumer("EVENTS", "tracing")
    await platform.bus.js.add_consumer("EVENTS", EVENTS_TRACING.config())


def counted(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


async def test_a_job_becomes_one_tree_with_derived_ids(platform: TracingPlatform, start: Start):
    await start()
    await Log(platform.bus).whole()
    await platform.wait_until_read()

    trace = await platform.trace("j1")

    assert outline(trace.root) == [
        "invoke_agent assistant",
        "  step 1",
        "    chat claude",
        "    execute_tool search",
        "  step 2",
        "    chat claude",
    ]
    assert trace.trace_id == ids.trace_id("acme", "j1")
    assert [span.span_id for span in flat(trace.root)] == [
        ids.job_span("acme", "j1"),
        ids.step_span("acme", "j1", 1),
        ids.model_span("acme", "j1", 1, 1),
        ids.tool_span("acme", "j1", 1, "1"),
        ids.step_span("acme", "j1", 2),
        ids.model_span("acme", "j1", 2, 1),
    ]
    chat = flat(trace.root)[2]
    assert (chat.kind, chat.status, chat.duration_ms, chat.cost_usd) == ("client", "ok", 800, Decimal("0.001"))
    assert chat.attributes["gen_ai.provider.name"] == "anthropic"
    assert chat.attributes["gen_ai.usage.input_tokens"] == 10
    assert chat.attributes["wayline.cost.usd"] == "0.001"
    assert {span.status for span in flat(trace.root)} == {"ok"}


async def test_totals_are_the_ledgers_and_parents_add_nothing(platform: TracingPlatform, start: Start):
    await start()
    await Log(platform.bus).whole()
    await platform.wait_until_read()

    trace = await platform.trace("j1")

    assert trace.totals.tokens == 30
    assert trace.totals.cost_usd == Decimal("0.012")
    assert sum(span.cost_usd or 0 for span in flat(trace.root)) == Decimal("0.012")
    assert await platform.rows("SELECT attempt_id, cost_usd, settled FROM ledger ORDER BY attempt_id") == [
        {"attempt_id": "acme/j1/1/1", "cost_usd": Decimal("0.01"), "settled": True},
        {"attempt_id": "acme/j1/1/m1", "cost_usd": Decimal("0.001"), "settled": True},
        {"attempt_id": "acme/j1/2/m1", "cost_usd": Decimal("0.001"), "settled": True},
    ]


async def test_steps_say_what_was_thought_asked_and_found(platform: TracingPlatform, start: Start):
    await start()
    await Log(platform.bus).whole()
    await platform.wait_until_read()

    steps = await platform.bus.ask(GetSteps(tenant="acme", job_id="j1"), StepList)

    first, second = steps.steps
    assert (first.thought, first.tool, first.input, first.output) == ("let me look", "search", {"q": "1"}, "found")
    assert (second.thought, second.tool, second.output) == ("", None, "because")
    assert [step.status for step in steps.steps] == ["success", "success"]


async def test_the_same_log_delivered_again_changes_nothing_and_counts_nothing(platform: TracingPlatform, start: Start):
    service = await start()
    await Log(platform.bus).whole()
    await platform.wait_until_read()
    before = await everything(platform)
    ended = counted("wayline_jobs_ended_total", outcome="completed", agent="assistant")
    tokens = counted(
        "gen_ai_client_inference_usage_input_tokens_total",
        gen_ai_provider_name="anthropic",
        gen_ai_request_model="claude",
        gen_ai_token_modality="unknown",
    )
    await service.stop(1)
    await deliver_again(platform)
    await start()
    await platform.wait_until_read()

    assert await everything(platform) == before
    assert counted("wayline_jobs_ended_total", outcome="completed", agent="assistant") == ended
    assert (
        counted(
            "gen_ai_client_inference_usage_input_tokens_total",
            gen_ai_provider_name="anthropic",
            gen_ai_request_model="claude",
            gen_ai_token_modality="unknown",
        )
        == tokens
    )


async def test_an_open_step_is_shown_and_closed_on_the_same_spans(platform: TracingPlatform, start: Start):
    await start()
    log = Log(platform.bus)
    await log.append(log.submitted(), log.routed())
    await log.append(log.claimed(), log.asked_model(1))
    await platform.wait_until_read()

    running = await platform.trace("j1")
    assert [(span.name, span.status, span.duration_ms) for span in flat(running.root)] == [
        ("invoke_agent assistant", "open", None),
        ("step 1", "open", None),
        ("chat claude", "open", None),
    ]
    assert running.totals.cost_usd == 0

    await log.append(log.model_answered(1, "because"), log.completed())
    await platform.wait_until_read()
    done = await platform.trace("j1")
    assert [span.span_id for span in flat(done.root)] == [span.span_id for span in flat(running.root)]
    assert {span.status for span in flat(done.root)} == {"ok"}


async def test_a_cancelled_job_closes_what_is_open(platform: TracingPlatform, start: Start):
    await start()
    log = Log(platform.bus)
    await log.append(log.submitted(), log.routed())
    await log.append(log.claimed(), log.asked_model(1))
    await log.append(log.model_answered(1, calls=("1", "2")), log.asked_tool(1, "1"), log.asked_tool(1, "2"))
    await log.append(log.tool_answered(1, call="1"))
    await log.append(log.cancelled())
    await platform.wait_until_read()

    trace = await platform.trace("j1")
    assert "open" not in {span.status for span in flat(trace.root)}
    assert trace.root.attributes["wayline.job.status"] == "cancelled"
    steps = await platform.bus.ask(GetSteps(tenant="acme", job_id="j1"), StepList)
    assert [call.status for call in steps.steps[0].calls] == ["success", "skipped"]
    assert [call.observation for call in steps.steps[0].calls] == ["search: 5 bytes", ""]
    assert steps.steps[0].status == "skipped"


async def test_a_dead_executors_call_is_unsettled_once_in_the_ledger(platform: TracingPlatform, start: Start):
    await start()
    log = Log(platform.bus)
    await log.append(log.submitted(), log.routed())
    await log.append(log.claimed(), log.asked_model(1))
    await log.append(log.claimed(epoch=2), log.asked_model(1, attempt=2))
    await log.append(log.model_answered(1, "because", attempt=2), log.completed())
    await platform.wait_until_read()

    assert await platform.rows("SELECT attempt_id, settled, open, cost_usd FROM ledger ORDER BY attempt_id") == [
        {"attempt_id": "acme/j1/1/m1", "settled": False, "open": False, "cost_usd": None},
        {"attempt_id": "acme/j1/1/m2", "settled": True, "open": False, "cost_usd": Decimal("0.001")},
    ]
    trace = await platform.trace("j1")
    assert (trace.totals.cost_usd, trace.totals.calls_unsettled) == (Decimal("0.001"), 1)
    assert [span.attributes.get("error.type") for span in flat(trace.root) if span.name == "chat claude"] == [
        "interrupted",
        None,
    ]
    assert [event["name"] for event in trace.root.events] == ["claimed", "claimed"]


async def test_the_callers_trace_is_the_roots_link_not_parent(platform: TracingPlatform, start: Start):
    await start()
    log = Log(platform.bus)
    caller = f"00-{'ab' * 16}-{'cd' * 8}-01"
    await log.append(log.submitted(caller=caller), log.failed())
    await platform.wait_until_read()

    root = (await platform.trace("j1")).root
    assert root.links == ({"trace_id": "ab" * 16, "span_id": "cd" * 8},)
    assert root.parent_span_id is None
    assert (root.status, root.attributes["error.type"]) == ("error", "unknown_agent")


async def test_days_of_waiting_are_no_duration(platform: TracingPlatform, start: Start):
    await start()
    log = Log(platform.bus)
    log.at -= timedelta(days=3)
    await log.append(log.submitted(), log.routed())
    await log.append(log.claimed(), log.asked_model(1), log.model_answered(1, calls=("1",)), log.asked_tool(1))
    await log.append(log.parked())
    await platform.wait_until_read()
    page = await platform.bus.ask(ListJobs(tenant="acme"), JobPage)
    assert page.jobs[0].status == Status.PARKED
    assert page.jobs[0].waiting_for is not None

    log.at += timedelta(days=2)
    await log.append(log.claimed(epoch=2), log.resumed(), log.tool_answered(1), log.completed())
    await platform.wait_until_read()

    root = (await platform.trace("j1")).root
    assert [round((span.duration_ms or 0) / 1_000) for span in flat(root)] == [9, 5, 1, 0]
    assert root.attributes["wayline.parked_ms"] == timedelta(days=2, seconds=1) / timedelta(milliseconds=1)
    assert [event["name"] for event in root.events] == ["claimed", "parked", "claimed", "resumed"]


async def test_a_record_that_skips_others_is_completed_from_the_log(platform: TracingPlatform, start: Start):
    await Log(platform.bus).whole()
    # As if other replicas had taken the first five: only the last record is delivered here.
    await platform.bus.js.delete_consumer("EVENTS", "tracing")
    late = dataclasses.asdict(EVENTS_TRACING.config()) | {"deliver_policy": "by_start_sequence", "opt_start_seq": 6}
    await platform.bus.js.add_consumer("EVENTS", ConsumerConfig(**late))
    await start()
    await platform.wait_until_read()

    assert (await platform.rows("SELECT status, steps FROM jobs")) == [{"status": "completed", "steps": 2}]
    assert len(flat((await platform.trace("j1")).root)) == 6


async def test_two_replicas_share_the_log_and_count_each_job_once(platform: TracingPlatform, start: Start):
    await start()
    await start()
    before = counted("wayline_jobs_ended_total", outcome="completed", agent="assistant")
    for number in range(10):
        await Log(platform.bus, job_id=f"job{number}").whole()
    await platform.wait_until_read()

    assert counted("wayline_jobs_ended_total", outcome="completed", agent="assistant") == before + 10
    assert await platform.rows("SELECT count(*) AS n, sum(cost_usd) AS usd FROM ledger") == [
        {"n": 30, "usd": Decimal("0.120")}
    ]
    assert len(await platform.rows("SELECT 1 FROM spans WHERE status = 'ok'")) == 60


async def test_a_record_with_claimed_fields_is_read_whole(platform: TracingPlatform, start: Start):
    await start()
    log = Log(platform.bus)
    await log.append(log.submitted(), log.routed())
    await log.append(log.claimed(), log.asked_model(1), log.model_answered(1, calls=("1",)), log.asked_tool(1))
    await log.append(log.tool_answered(1, "x" * 400_000))
    await platform.wait_until_read()

    output = (await platform.rows("SELECT output FROM steps"))[0]["output"]
    assert output.startswith("x" * 1_000)
    assert output.endswith("(334464 characters more in the job's log)")


async def test_an_unreadable_record_is_dead_lettered_and_its_neighbours_stored(platform: TracingPlatform, start: Start):
    log = Log(platform.bus)
    await log.append(log.submitted(), log.routed())
    await platform.bus.store("events.acme.j1", b"{not json", AS_RECORD)
    await platform.bus.store("events.acme.j2", b'{"events": [{"type": "job.routed", "seq": "x"}]}', AS_RECORD)
    await log.append(log.claimed(), log.asked_model(1), log.model_answered(1, "nul \x00 here"), log.completed("\x00"))
    await start(QUICK.model_copy(update={"linger_ms": 200, "idle_linger_ms": 200}))
    await platform.wait_until_read()

    assert await platform.rows("SELECT job_id, status FROM jobs") == [{"job_id": "j1", "status": "completed"}]
    state = await platform.bus.js.stream_info("DEAD")
    assert state.state.messages == 2
    dead = await platform.bus.js.get_msg("DEAD", 1)
    assert (dead.headers or {})["Wayline-Dead-Code"] == "invalid_record"


async def test_a_row_that_postgres_refuses_harms_no_neighbour(platform: TracingPlatform, start: Start):
    bad, good = Log(platform.bus, job_id="bad"), Log(platform.bus, job_id="good")
    huge = bad.submitted().model_copy(update={"seq": 2**40})
    await bad.append(huge)
    await good.whole()
    await start(QUICK.model_copy(update={"linger_ms": 200, "idle_linger_ms": 200}))

    await platform.wait_until_read()

    assert (await platform.bus.js.stream_info("DEAD")).state.messages == 1
    assert await platform.rows("SELECT job_id, status FROM jobs") == [{"job_id": "good", "status": "completed"}]


async def test_an_older_picture_never_covers_a_newer_one(platform: TracingPlatform):
    tables = PostgresTables(platform.tables, spans_days=7)
    await tables.keep_spans()
    log, projection = Log(platform.bus), JobProjection("acme", "j1")
    for event in (log.submitted(), log.routed(), log.claimed(), log.asked_model(1)):
        projection.apply(event)
    older = projection.take_changes()
    for event in (log.model_answered(1, "because"), log.completed()):
        projection.apply(event)
    newer = projection.take_changes()

    assert await tables.write(newer.rows) == {("acme", "j1")}
    before = await everything(platform)
    assert await tables.write(older.rows) == set()
    assert await everything(platform) == before


async def test_records_that_another_replica_took_are_read_from_the_log(platform: TracingPlatform):
    await Log(platform.bus).whole()
    tables = PostgresTables(platform.tables, spans_days=7)
    await tables.keep_spans()
    projector = Projector(platform.bus, tables, TraceTenants(tables), jobs_max=10)
    for sequence in (1, 4, 3, 6):
        message = await platform.bus.js.get_msg("EVENTS", sequence)
        await projector.store([parse("events.acme.j1", sequence, message.data or b"")])

    assert await platform.rows("SELECT status, steps, cost_usd FROM jobs") == [
        {"status": "completed", "steps": 2, "cost_usd": Decimal("0.012")}
    ]
    assert await platform.rows("SELECT count(*) AS n FROM spans WHERE status = 'ok'") == [{"n": 6}]
