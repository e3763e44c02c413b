"""Puts tracing together."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import asyncpg

from wayline.chassis import Ask, Bus, BusSettings, Failpoint, Part, Periodic, Service, asks, connected
from wayline.chassis.handling.batches import Batches, BatchFailpoints, Linger, StoreErrors
from wayline.chassis.topology import EVENTS_TRACING, TELEMETRY_TRACING
from wayline.contracts.feedback import GiveFeedback, ListFeedback
from wayline.contracts.finished_jobs import TakeFinished
from wayline.contracts.forgetting import EraseFromTracing
from wayline.contracts.job_events import ReadEvents
from wayline.contracts.job_tags import TagJobs
from wayline.contracts.overview import GetJobsOverview
from wayline.contracts.received_spans import ReceiveSpans
from wayline.contracts.span_search import ListSpanNames, SearchSpans
from wayline.contracts.tool_use import (
    FindParkedJobs,
    GetAgentsToolUse,
    GetAllToolFigures,
    GetToolFigures,
    GetToolUse,
    ListRecordedCalls,
)
from wayline.contracts.traces import (
    FindQueuePlaces,
    GetCosts,
    GetSessionCosts,
    GetSteps,
    GetTrace,
    ListJobs,
    RecordSpending,
)
from wayline.store import PostgresUnavailable, Store
from wayline.telemetry import BusExporter, Telemetry
from wayline.tracing.adapters.collector import Collector
from wayline.tracing.adapters.otlp_exporter import dialects_of, is_wanted, make_exporter
from wayline.tracing.adapters.received_table import PostgresReceivedTable
from wayline.tracing.adapters.tables import PostgresTables
from wayline.tracing.consume.exported_spans import Export, ExportedSpans
from wayline.tracing.consume.projector import Projector, Record
from wayline.tracing.consume.stored_ranges import StoredRanges
from wayline.tracing.consume.trace_tenants import TraceTenants
from wayline.tracing.handlers.answers import ViewHandlers
from wayline.tracing.handlers.erasing import Eraser
from wayline.tracing.handlers.feedback import FeedbackHandlers
from wayline.tracing.handlers.find_spans import SpanSearch
from wayline.tracing.handlers.finished_jobs import Followers
from wayline.tracing.handlers.job_events import JobEvents
from wayline.tracing.handlers.receive_spans import SpanReceiver
from wayline.tracing.handlers.record_spending import SpendingRecorder
from wayline.tracing.handlers.tagging import Tagger
from wayline.tracing.handlers.tool_use import ToolUseAnswers
from wayline.tracing.job_metrics import JobMetrics
from wayline.tracing.settings import Settings
from wayline.tracing.tables import Tables
from wayline.tracing.upkeep.drift import DriftCheck
from wayline.tracing.upkeep.gauges import Gauges
from wayline.tracing.upkeep.retention import REST_FACTOR, Retention

NAME = "tracing"
SCHEMA = "tracing"
HERE = Path(__file__).parent
POOL_SIZE = 6
ERRORS = StoreErrors(
    away=(PostgresUnavailable,), refused=(asyncpg.DataError, asyncpg.IntegrityConstraintViolationError)
)
FAILPOINTS = BatchFailpoints(Failpoint.TRACING_STORE_BEFORE, Failpoint.TRACING_STORE_AFTER, Failpoint.TRACING_ACK_AFTER)


def migrations() -> Path:
    """Return the folder of the migrations of tracing's schema."""
    return HERE / "migrations"


async def open_store(dsn: str, *, pool_size: int = POOL_SIZE, wait_s: float = 0.0) -> Store:
    """Open tracing's tables; wait `wait_s` for a Postgres that is away."""
    queries = HERE / "queries.sql"
    return await Store.connect(dsn, schema=SCHEMA, queries=queries, max_size=pool_size, wait_s=wait_s)


async def build(settings: Settings | None = None, *, bus_settings: BusSettings | None = None) -> Service:
    """Connect and wire everything; nothing runs until the service is started."""
    settings, shared = settings or Settings(), bus_settings or BusSettings()
    opening = partial(open_store, shared.dsn_of(NAME), pool_size=settings.pool_size, wait_s=settings.postgres_wait_s)
    bus, store = await connected(shared, NAME, opening)
    tables = PostgresTables(store, spans_days=settings.spans_days)
    exporter = BusExporter(NAME)
    telemetry = Telemetry(NAME, exporter)
    collector = _collector(settings, telemetry)
    stored = StoredRanges()
    job_metrics = JobMetrics(names_max=settings.labels_max, names_per_tenant_max=settings.labels_per_tenant_max)
    records, spans = _readers(settings, bus, tables, collector, stored=stored, job_metrics=job_metrics)
    drift = _drift_check(settings, bus, tables, collector, stored=stored, job_metrics=job_metrics)
    feedback = FeedbackHandlers(store, forward=collector.forward_rows if collector else None)
    gauges = Gauges(bus, store, labels_max=settings.labels_max)
    periodic = partial(Periodic, rest_factor=REST_FACTOR)
    parts: list[Part] = [
        # First: nothing can be stored before there are partitions.
        Retention(tables, ledger_days=settings.ledger_days, every_s=settings.keep_every_s),
        *([collector] if collector else []),
        records,
        spans,
        periodic("queue gauges", gauges.read_queues, every_s=settings.gauges_every_s),
        periodic("approval gauge", gauges.read_approvals, every_s=settings.gauges_every_s),
        periodic("standby gauges", gauges.read_standbys, every_s=settings.gauges_every_s),
        periodic("ledger gauges", gauges.read_ledger, every_s=settings.gauges_every_s),
        periodic("drift check", drift.check, every_s=settings.drift_every_s),
    ]

    async def close() -> None:
        if collector:
            await collector.close()
        await store.close()

    return Service(
        NAME,
        shared,
        bus,
        telemetry,
        exporter,
        asks=[
            *_asks(ViewHandlers(store)),
            *_asks_for_spans(SpanSearch(store)),
            *_asks_about_tools(ToolUseAnswers(store)),
            asks(ReceiveSpans, _receiver(settings, store, tables).on_receive),
            asks(RecordSpending, SpendingRecorder(tables).on_record),
            asks(TakeFinished, Followers(store, bus.put_aside).take),
            asks(ReadEvents, JobEvents(bus).read),
            asks(EraseFromTracing, Eraser(store).on_erase),
            asks(GiveFeedback, feedback.on_give),
            asks(ListFeedback, feedback.on_list),
            asks(TagJobs, Tagger(store).on_tag),
        ],
        parts=parts,
        needs={"postgres": store.check, "records": records.check, "spans": spans.check},
        close=close,
    )


def _collector(settings: Settings, telemetry: Telemetry) -> Collector | None:
    if not is_wanted(settings):
        return None
    return Collector(partial(make_exporter, settings), telemetry.provider.sampler, dialects=dialects_of(settings))


def _readers(
    settings: Settings,
    bus: Bus,
    tables: Tables,
    collector: Collector | None,
    *,
    stored: StoredRanges,
    job_metrics: JobMetrics,
) -> tuple[Batches[Record], Batches[Export]]:
    """Build the reader of the logs, and that of the spans that services export."""
    trace_tenants = TraceTenants(tables)
    forward = collector.forward_rows if collector else None
    jobs_max = settings.jobs_in_memory_max
    projector = Projector(
        bus, tables, trace_tenants, jobs_max=jobs_max, forward=forward, stored=stored, job_metrics=job_metrics
    )
    exported = ExportedSpans(tables, trace_tenants, forward=collector.forward if collector else None)
    batches = partial(
        Batches,
        bus,
        errors=ERRORS,
        failpoints=FAILPOINTS,
        size=settings.batch_max,
        linger=Linger(
            settings.linger_ms / 1_000, settings.busy_linger_ms / 1_000, idle_s=settings.idle_linger_ms / 1_000
        ),
    )
    return (
        batches(EVENTS_TRACING, read=projector.read, store=projector.store),
        batches(TELEMETRY_TRACING, read=exported.read, store=exported.store),
    )


def _receiver(settings: Settings, store: Store, tables: PostgresTables) -> SpanReceiver:
    table, tenants = PostgresReceivedTable(store, tables), TraceTenants(tables)
    hourly_max = settings.received_spans_hourly_max
    return SpanReceiver(table, tenants, spans_days=settings.spans_days, hourly_max=hourly_max)


def _drift_check(
    settings: Settings,
    bus: Bus,
    tables: Tables,
    collector: Collector | None,
    *,
    stored: StoredRanges,
    job_metrics: JobMetrics,
) -> DriftCheck:
    """Build the check of tables against logs; its projections are its own, and none is kept."""
    forward = collector.forward_rows if collector else None
    projector = Projector(bus, tables, TraceTenants(tables), jobs_max=0, forward=forward, job_metrics=job_metrics)
    return DriftCheck(bus, tables, projector, keep_days=settings.ledger_days, stored=stored)


def _asks(answers: ViewHandlers) -> list[Ask[Any]]:
    return [
        asks(GetTrace, answers.get_trace),
        asks(GetSteps, answers.get_steps),
        asks(ListJobs, answers.list_jobs),
        asks(GetJobsOverview, answers.get_overview),
        asks(FindQueuePlaces, answers.find_queue_places),
        asks(GetCosts, answers.get_costs),
        asks(GetSessionCosts, answers.get_session_costs),
    ]


def _asks_for_spans(answers: SpanSearch) -> list[Ask[Any]]:
    return [asks(SearchSpans, answers.search), asks(ListSpanNames, answers.list_names)]


def _asks_about_tools(answers: ToolUseAnswers) -> list[Ask[Any]]:
    return [
        asks(GetToolFigures, answers.get_tool_figures),
        asks(GetAllToolFigures, answers.get_all_tool_figures),
        asks(GetToolUse, answers.get_tool_use),
        asks(GetAgentsToolUse, answers.get_agents_tool_use),
        asks(FindParkedJobs, answers.find_parked_jobs),
        asks(ListRecordedCalls, answers.list_recorded_calls),
    ]
