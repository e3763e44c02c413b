"""The router put together."""

from __future__ import annotations

from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from wayline.chassis import Ask, Bus, BusSettings, Delivery, Failpoint, Service, Work, asks, connected, reach
from wayline.chassis.topology import ADVISORY_ROUTER, APPROVALS_ROUTER, LATER_ROUTER, SIGNALS_ROUTER, SUBMIT_ROUTER
from wayline.contracts import agents, budgets, models, schedules, sessions, tenant_settings, tenants
from wayline.contracts.errors import InvalidMessage
from wayline.contracts.jobs import DecideApproval, Due, GetLatestRun, PlanJob, Signal, StartChild, SubmitJob
from wayline.contracts.tool_use import FindAgentsUsing
from wayline.router.adapters.approvals import Approvals
from wayline.router.adapters.attachments import AttachmentLimits, Attachments
from wayline.router.adapters.availability import Availability
from wayline.router.adapters.budgets import Budgets
from wayline.router.adapters.catalogue import Catalogue
from wayline.router.adapters.families import Families
from wayline.router.adapters.firings import Firings
from wayline.router.adapters.latest_results import LatestResults
from wayline.router.adapters.lost_charges import LostCharges
from wayline.router.adapters.schedules import ScheduleLimits, Schedules
from wayline.router.adapters.sessions import Sessions
from wayline.router.adapters.shares import ShareLimits, Shares
from wayline.router.adapters.signal_share import SignalShare
from wayline.router.adapters.tables import Tables
from wayline.router.adapters.tenant_settings import SettingsTable
from wayline.router.adapters.tenants import Tenants
from wayline.router.adapters.ticket_lanes import TicketLanes
from wayline.router.adapters.turn_upkeep import TurnUpkeep
from wayline.router.adapters.turns import Turns
from wayline.router.adapters.usage import Usage
from wayline.router.adapters.waking import Waker
from wayline.router.admission import job_id_of
from wayline.router.advisories import Advisory, put_aside
from wayline.router.bundled import bundled
from wayline.router.handlers.agents import AgentHandlers
from wayline.router.handlers.children import ChildHandlers
from wayline.router.handlers.first_records import FirstRecords
from wayline.router.handlers.models import ModelHandlers
from wayline.router.handlers.routes import Routes
from wayline.router.handlers.settlements import SettlementHandlers
from wayline.router.handlers.signals import SignalHandlers
from wayline.router.handlers.submissions import SubmissionHandlers
from wayline.router.settings import Settings
from wayline.store import Store
from wayline.telemetry import BusExporter, Home, Telemetry

NAME = "router"
SCHEMA = "router"


def migrations() -> Path:
    """Return where the files are that make the router's tables."""
    return Path(str(files("wayline.router") / "migrations"))


async def build(settings: Settings | None = None, *, bus_settings: BusSettings | None = None) -> Service:
    """Connect, and bind every handler to what it hears."""
    settings, shared = settings or Settings(), bus_settings or BusSettings()
    opening = partial(open_store, shared.dsn_of(NAME), wait_s=shared.connect_wait_s)
    bus, store = await connected(shared, NAME, opening)
    exporter = BusExporter(NAME)
    tables = Tables(
        store,
        tenants_fresh_s=settings.tenants_fresh_s,
        job_budget_usd=settings.job_budget_usd,
        turns_waiting_max=settings.turns_waiting_max,
    )
    await tables.seed(bundled())
    catalogue = Catalogue(
        store, reachable=settings.reachable(), fresh_s=settings.models_fresh_s, own_max=settings.models_max
    )
    limits = ShareLimits(settings.stored_per_tenant_max_bytes, settings.unfinished_per_tenant_max)
    shares = Shares(bus, store, limits)
    known = Tenants(store, bundled=bundled(), tenants_max=settings.tenants_max, why_full=shares.why_full)
    waker = Waker(bus, store, every_s=settings.budgets_every_s)
    money = Budgets(store, job_budget_usd=settings.job_budget_usd, changed=waker.look_now)
    availability, usage = Availability(bus), Usage(store, every_s=settings.usage_every_s)
    families, latest = Families(bus, store), LatestResults(store)
    turns = Turns(bus, store, waiting_max=settings.turns_waiting_max)
    chosen = SettingsTable(store, job_budget_usd=settings.job_budget_usd)
    signal_share = SignalShare(bus, most=shared.signals_per_tenant_max)
    firings = Firings(bus, store, every_s=settings.schedules_every_s, missed_max_s=settings.schedules_missed_max_s)
    planned = Schedules(
        bus, store, firings, ScheduleLimits(settings.schedules_max, settings.schedules_least_interval_s)
    )
    approvals = Approvals(bus)
    attachments = Attachments(bus, AttachmentLimits(settings.files_max, settings.files_max_bytes))
    sessions, lanes = Sessions(store), TicketLanes(bus)
    routes = Routes(
        tables,
        catalogue,
        attachments=attachments,
        sessions=sessions,
        availability=availability,
        usage=usage,
        default_model=settings.default_model,
    )
    records = FirstRecords(
        bus,
        tables,
        money,
        routes=routes,
        shares=shares,
        turns=turns,
        families=families,
        firings=firings,
        latest=latest,
    )
    submissions = SubmissionHandlers(
        bus, tables, records, shares=shares, turns=turns, ticket_lanes=lanes, firings=firings, latest=latest
    )
    signals = SignalHandlers(
        bus, money, families=families, signal_share=signal_share, approvals=approvals, ticket_lanes=lanes
    )
    settlements = SettlementHandlers(
        bus, money, usage=usage, sessions=sessions, turns=turns, families=families, ticket_lanes=lanes, latest=latest
    )
    return Service(
        name=NAME,
        settings=shared,
        bus=bus,
        telemetry=Telemetry(NAME, exporter),
        exporter=exporter,
        work=_work(submissions, signals, approvals, bus, slots=settings.slots),
        asks=[
            asks(PlanJob, routes.on_plan),
            asks(budgets.SettleJob, settlements.on_settle),
            asks(StartChild, ChildHandlers(bus, records, families, lanes).on_start),
            *_asks_about_agents(AgentHandlers(tables, catalogue, attachments)),
            asks(GetLatestRun, latest.on_get),
            *_asks_about_models(ModelHandlers(tables, catalogue)),
            *_asks_about_money(money),
            *_asks_about_tenants(known),
            *_asks_about_sessions(turns),
            *_asks_about_schedules(planned),
            asks(tenant_settings.GetSettings, chosen.on_get),
            asks(tenant_settings.ChangeSettings, chosen.on_change),
            asks(tenants.NoteStored, shares.on_stored),
        ],
        parts=[
            waker,
            LostCharges(money),
            availability,
            usage,
            signal_share,
            shares,
            firings,
            TurnUpkeep(bus, store, records.conclude),
        ],
        reports_stored=False,
        needs={"postgres": store.check},
        close=store.close,
    )


async def open_store(dsn: str, *, wait_s: float = 0.0) -> Store:
    """Open the router's tables; wait `wait_s` for a Postgres that is away."""
    queries = files("wayline.router") / "queries.sql"
    return await Store.connect(dsn, schema=SCHEMA, queries=queries, wait_s=wait_s, init=_read_by_index)


async def _read_by_index(conn: Any) -> None:
    # A session keeps the plans that it made for empty tables until somebody analyzes them, and an empty table is read
    # whole: who waits for a budget would be looked for among all jobs that there have been. `force_custom_plan` is no
    # help: without statistics the index of those that wait is not trusted, and planning each statement of the money
    # functions takes longer than running it.
    await conn.execute("SET enable_seqscan = off")


def _work(
    submissions: SubmissionHandlers, signals: SignalHandlers, approvals: Approvals, bus: Bus, *, slots: int
) -> list[Work[Any]]:
    """Return what is done with each message of the router's queues."""
    return [
        Work(
            SUBMIT_ROUTER,
            SubmitJob,
            submissions.on_submit,
            slots=slots,
            home=_home_of_submission,
            before_dead=submissions.on_refused,
            after_publish=partial(reach, Failpoint.ROUTER_TICKET_AFTER),
            after_ack=partial(reach, Failpoint.ROUTER_ACK_AFTER),
        ),
        Work(
            SIGNALS_ROUTER,
            Signal,
            signals.on_signal,
            home=lambda signal, _: Home.of(signal.tenant, signal.job_id),
            after_publish=partial(reach, Failpoint.ROUTER_WAKE_AFTER),
        ),
        Work(
            APPROVALS_ROUTER,
            DecideApproval,
            signals.on_decide_approval,
            before_dead=approvals.refuse,
            home=lambda decided, _: Home.of(decided.tenant, decided.job_id),
            after_publish=partial(reach, Failpoint.ROUTER_WAKE_AFTER),
        ),
        Work(LATER_ROUTER, Due, signals.on_due, home=lambda due, _: Home.of(due.tenant, due.job_id)),
        Work(ADVISORY_ROUTER, Advisory, partial(put_aside, bus)),
    ]


def _asks_about_agents(saved: AgentHandlers) -> list[Ask[Any]]:
    return [
        asks(agents.GetAgent, saved.on_get),
        asks(agents.ListAgents, saved.on_list),
        asks(agents.PutAgent, saved.on_put),
        asks(agents.DeleteAgent, saved.on_delete),
        asks(agents.RestoreAgent, saved.on_restore),
        asks(FindAgentsUsing, saved.on_find_using),
    ]


def _asks_about_models(cards: ModelHandlers) -> list[Ask[Any]]:
    return [
        asks(models.ListModels, cards.on_list),
        asks(models.PutModel, cards.on_put),
        asks(models.DeleteModel, cards.on_delete),
    ]


def _asks_about_money(money: Budgets) -> list[Ask[Any]]:
    return [
        asks(budgets.ExtendBudget, money.on_extend),
        asks(budgets.HoldCharge, money.on_hold_charge),
        asks(budgets.ChargeBudgets, money.on_charge),
        asks(budgets.ReleaseBudget, money.on_release),
        asks(budgets.ListBudgets, money.on_list),
        asks(budgets.PutBudget, money.on_put),
        asks(budgets.DeleteBudget, money.on_delete),
    ]


def _asks_about_tenants(known: Tenants) -> list[Ask[Any]]:
    return [
        asks(tenants.CreateTenant, known.on_create),
        asks(tenants.GetTenant, known.on_get),
        asks(tenants.ListTenants, known.on_list),
        asks(tenants.DisableTenant, known.on_disable),
        asks(tenants.EnableTenant, known.on_enable),
    ]


def _asks_about_sessions(turns: Turns) -> list[Ask[Any]]:
    return [
        asks(sessions.ListSessions, turns.on_list),
        asks(sessions.GetSession, turns.on_get),
        asks(sessions.DeleteSession, turns.on_delete),
    ]


def _asks_about_schedules(planned: Schedules) -> list[Ask[Any]]:
    return [
        asks(schedules.PutSchedule, planned.on_put),
        asks(schedules.EnableSchedule, planned.on_enable),
        asks(schedules.GetSchedule, planned.on_get),
        asks(schedules.ListSchedules, planned.on_list),
        asks(schedules.DeleteSchedule, planned.on_delete),
        asks(schedules.RunSchedule, planned.on_run),
    ]


def _home_of_submission(job: SubmitJob, delivery: Delivery) -> Home | None:
    try:
        return Home.of(job.tenant, job_id_of(job.job_id, delivery))
    except InvalidMessage:
        return None
