"""The router's rooms put together: tables and processes, then what hears messages about them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Self

from wayline.chassis import Bus, Part
from wayline.chassis.concurrency.work_watch import Look, WorkWatch
from wayline.chassis.controls import Controls
from wayline.router.admission.admission_table import AdmissionTable
from wayline.router.agents.agent_table import AgentTable
from wayline.router.agents.bundled import bundled
from wayline.router.agents.handlers import AgentHandlers
from wayline.router.agents.label_table import LabelTable
from wayline.router.begun_messages import BegunMessages
from wayline.router.fair_share.backlogs import Backlogs
from wayline.router.fair_share.feeding import Feeder
from wayline.router.fair_share.share_table import ShareTable
from wayline.router.forgetting.forget_table import ForgetTable
from wayline.router.forgetting.handlers import ForgetHandlers
from wayline.router.forgetting.jobs_to_end import JobsToEnd
from wayline.router.forgetting.open_forgets import OpenForgets
from wayline.router.forgetting.own_rows import OwnRows
from wayline.router.forgetting.saga import LOOK_EVERY_S as FORGETTING_EVERY_S
from wayline.router.forgetting.saga import Forgetter
from wayline.router.forgetting.stored_messages import StoredMessages
from wayline.router.forgetting.stores import erasable_stores
from wayline.router.jobs.approvals import Approvals
from wayline.router.jobs.families import Families
from wayline.router.jobs.first_records import FirstRecords
from wayline.router.jobs.handlers.children import ChildHandlers
from wayline.router.jobs.handlers.results import ResultHandlers
from wayline.router.jobs.handlers.settlements import SettlementHandlers
from wayline.router.jobs.handlers.signals import SignalHandlers
from wayline.router.jobs.handlers.submissions import SubmissionHandlers
from wayline.router.jobs.parked_signals import ParkedSignals
from wayline.router.jobs.result_table import ResultTable
from wayline.router.jobs.tool_results import ClientResults
from wayline.router.models.attachments import AttachmentLimits, Attachments
from wayline.router.models.availability import Availability
from wayline.router.models.handlers import ModelHandlers
from wayline.router.models.tenant_models import Catalogue
from wayline.router.money.budget_table import BudgetTable
from wayline.router.money.handlers import MoneyHandlers
from wayline.router.money.lost_charges import LostCharges
from wayline.router.money.waking import Waker
from wayline.router.permits.control_table import ControlTable
from wayline.router.permits.granting import LOOK_EVERY_S as PERMITS_EVERY_S
from wayline.router.permits.granting import Granting
from wayline.router.permits.handlers import PermitHandlers
from wayline.router.permits.permit_table import PermitTable
from wayline.router.permits.places import RunPlaces
from wayline.router.routes.agent_averages import AgentUsage
from wayline.router.routes.handlers import RouteHandlers
from wayline.router.routes.routes import Routes
from wayline.router.routes.session_caches import SessionCaches
from wayline.router.schedules.firing_table import FiringTable
from wayline.router.schedules.firings import Firings
from wayline.router.schedules.handlers import ScheduleHandlers, ScheduleLimits
from wayline.router.schedules.schedule_table import ScheduleTable
from wayline.router.sessions.accepted_order import AcceptedOrder
from wayline.router.sessions.extraction_table import ExtractionTable
from wayline.router.sessions.extractions import ExtractionLimits, Extractions
from wayline.router.sessions.handlers import SessionHandlers
from wayline.router.sessions.turn_table import TurnTable
from wayline.router.sessions.turns import Turns
from wayline.router.settings import Settings
from wayline.router.tenants.handlers import SettingsHandlers, TenantHandlers
from wayline.router.tenants.known_tenants import KnownTenants
from wayline.router.tenants.settings_table import SettingsTable
from wayline.router.tenants.shares import ShareLimits, Shares
from wayline.router.tenants.signal_share import SignalShare
from wayline.router.tenants.tenant_table import TenantTable
from wayline.router.ticket_lanes import TicketLanes
from wayline.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Rooms:
    """What the router keeps in Postgres and knows of the bus, by subject."""

    accepted_order: AcceptedOrder
    admissions: AdmissionTable
    agents: AgentTable
    labels: LabelTable
    approvals: Approvals
    attachments: Attachments
    availability: Availability
    begun: BegunMessages
    budgets: BudgetTable
    catalogue: Catalogue
    control_table: ControlTable
    controls: Controls
    extractions: Extractions
    families: Families
    feeder: Feeder
    firings: Firings
    forgets: ForgetTable
    forgetter: Forgetter
    granting: Granting
    known_tenants: KnownTenants
    lanes: TicketLanes
    open_forgets: OpenForgets
    parked_signals: ParkedSignals
    permits: PermitTable
    places: RunPlaces
    results: ResultTable
    schedules: ScheduleTable
    session_caches: SessionCaches
    settings: SettingsTable
    shares: Shares
    signal_share: SignalShare
    tenants: TenantTable
    turn_table: TurnTable
    turns: Turns
    usage: AgentUsage
    waker: Waker

    @classmethod
    def of(cls, bus: Bus, store: Store, settings: Settings, *, signals_per_tenant_max: int) -> Self:
        """Make each from its settings; nothing runs yet."""
        backlogs = Backlogs(bus, shared=settings.share_lanes)
        lanes, turn_table, usd = TicketLanes(bus, backlogs), TurnTable(store), settings.job_budget_usd
        missed_max_s, forgets = settings.schedules_missed_max_s, ForgetTable(store)
        controls, permits = Controls(bus), PermitTable(store)
        control_table = ControlTable(store, controls)
        granting = Granting(bus, permits, control_table, lanes)
        return cls(
            accepted_order=AcceptedOrder(bus),
            admissions=AdmissionTable(store, job_budget_usd=usd, turns_waiting_max=settings.turns_waiting_max),
            agents=AgentTable(store),
            labels=LabelTable(store),
            approvals=Approvals(bus),
            attachments=Attachments(bus, AttachmentLimits(settings.files_max, settings.files_max_bytes)),
            availability=Availability(bus),
            begun=BegunMessages(store),
            budgets=BudgetTable(store, job_budget_usd=usd),
            catalogue=_catalogue(store, settings),
            control_table=control_table,
            controls=controls,
            extractions=Extractions(bus, ExtractionTable(store), _extraction_limits(settings)),
            families=Families(bus, store),
            feeder=Feeder(bus, ShareTable(store), backlogs, shared=settings.share_lanes),
            firings=Firings(bus, FiringTable(store), every_s=settings.schedules_every_s, missed_max_s=missed_max_s),
            forgets=forgets,
            forgetter=_forgetter(bus, store, forgets),
            granting=granting,
            known_tenants=KnownTenants(store, fresh_s=settings.tenants_fresh_s),
            lanes=lanes,
            open_forgets=OpenForgets(forgets),
            parked_signals=ParkedSignals(bus, lanes),
            permits=permits,
            places=RunPlaces(controls, permits, freed=granting.look_now),
            results=ResultTable(store),
            schedules=ScheduleTable(store),
            session_caches=SessionCaches(store),
            settings=SettingsTable(store, job_budget_usd=usd),
            shares=Shares(bus, store, _share_limits(settings)),
            signal_share=SignalShare(bus, most=signals_per_tenant_max),
            tenants=TenantTable(store),
            turn_table=turn_table,
            turns=Turns(bus, turn_table, lanes, waiting_max=settings.turns_waiting_max),
            usage=AgentUsage(store, every_s=settings.usage_every_s),
            waker=Waker(
                bus,
                store,
                every_s=settings.budgets_every_s,
                labels_max=settings.budget_labels_max,
                labels_per_tenant_max=settings.budget_labels_per_tenant_max,
            ),
        )

    def parts(self) -> list[Part]:
        """Return those that run beside the handlers, and what looks for charges that no job settled."""
        lost_charges = LostCharges(self.budgets)
        return [
            *(self.controls, self.granting, self.feeder),
            *(self.waker, lost_charges, self.availability, self.usage),
            *(self.signal_share, self.shares, self.firings, self.forgetter, self.extractions),
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Handlers:
    """What the router does with each message, by subject."""

    agents: AgentHandlers
    children: ChildHandlers
    forgetting: ForgetHandlers
    models: ModelHandlers
    money: MoneyHandlers
    permits: PermitHandlers
    records: FirstRecords
    results: ResultHandlers
    routes: RouteHandlers
    schedules: ScheduleHandlers
    sessions: SessionHandlers
    settings: SettingsHandlers
    settlements: SettlementHandlers
    signals: SignalHandlers
    submissions: SubmissionHandlers
    tenants: TenantHandlers

    @classmethod
    def of(cls, bus: Bus, own: Rooms, settings: Settings) -> Self:
        """Give each handler what it needs of the rooms."""
        routes, known = _routes(own, settings.default_model), own.known_tenants
        records = _first_records(bus, own, routes)
        return cls(
            agents=AgentHandlers(
                own.agents, own.labels, tenants=known, catalogue=own.catalogue, attachments=own.attachments
            ),
            children=ChildHandlers(bus, records, own.families, own.lanes),
            forgetting=ForgetHandlers(bus, own.forgets, tenants=known, forgetter=own.forgetter, jobs=JobsToEnd(bus)),
            models=ModelHandlers(own.catalogue, tenants=known),
            money=MoneyHandlers(own.budgets, tenants=known, changed=own.waker.look_now),
            permits=PermitHandlers(own.control_table, own.permits, tenants=known, changed=own.granting.look_now),
            records=records,
            results=ResultHandlers(own.results),
            routes=RouteHandlers(own.admissions, routes, agents=own.agents, catalogue=own.catalogue),
            schedules=_schedules(bus, own, settings),
            sessions=SessionHandlers(own.turn_table, own.turns),
            settings=SettingsHandlers(own.settings, tenants=known, require_usable=own.catalogue.require_usable),
            settlements=_settlements(bus, own),
            signals=_signals(bus, own),
            submissions=_submissions(bus, own, records),
            tenants=TenantHandlers(own.tenants, shares=own.shares, bundled=bundled(), tenants_max=settings.tenants_max),
        )


def work_watch(store: Store, own: Rooms, settings: Settings) -> WorkWatch:
    """Return what asks the tables which rooms have work that no message tells of."""
    looks = {
        "budgets": Look(own.waker.look_now, settings.budgets_every_s),
        "forgetting": Look(own.forgetter.look_now, FORGETTING_EVERY_S),
        "permits": Look(own.granting.look_now, PERMITS_EVERY_S),
        "schedules": Look(own.firings.look_now, settings.schedules_every_s),
    }
    return WorkWatch(partial(store.true_columns, store.sql.work_due), looks)


def _forgetter(bus: Bus, store: Store, forgets: ForgetTable) -> Forgetter:
    stores = erasable_stores(bus, StoredMessages(bus), OwnRows(store))
    return Forgetter(forgets, JobsToEnd(bus), stores)


def _extraction_limits(settings: Settings) -> ExtractionLimits:
    return ExtractionLimits(
        quiet_s=settings.extraction_quiet_s,
        budget_usd=settings.extraction_budget_usd,
        every_s=settings.extraction_every_s,
        summary_every_s=settings.summary_every_s,
    )


def _share_limits(settings: Settings) -> ShareLimits:
    return ShareLimits(settings.stored_per_tenant_max_bytes, settings.unfinished_per_tenant_max)


def _schedules(bus: Bus, own: Rooms, settings: Settings) -> ScheduleHandlers:
    limits = ScheduleLimits(settings.schedules_max, settings.schedules_least_interval_s)
    return ScheduleHandlers(bus, own.schedules, tenants=own.known_tenants, firings=own.firings, limits=limits)


def _catalogue(store: Store, settings: Settings) -> Catalogue:
    return Catalogue(
        store, reachable=settings.reachable(), fresh_s=settings.models_fresh_s, own_max=settings.models_max
    )


def _routes(own: Rooms, default_model: str) -> Routes:
    return Routes(
        own.catalogue,
        attachments=own.attachments,
        session_caches=own.session_caches,
        availability=own.availability,
        usage=own.usage,
        default_model=default_model,
    )


def _first_records(bus: Bus, own: Rooms, routes: Routes) -> FirstRecords:
    return FirstRecords(
        bus,
        own.admissions,
        own.budgets,
        routes=routes,
        shares=own.shares,
        turns=own.turns,
        families=own.families,
        firings=own.firings,
        latest=own.results,
        accepted_order=own.accepted_order,
        places=own.places,
    )


def _submissions(bus: Bus, own: Rooms, records: FirstRecords) -> SubmissionHandlers:
    return SubmissionHandlers(
        bus,
        own.known_tenants,
        records,
        shares=own.shares,
        open_forgets=own.open_forgets,
        turns=own.turns,
        ticket_lanes=own.lanes,
        firings=own.firings,
        latest=own.results,
        accepted_order=own.accepted_order,
        parked_signals=own.parked_signals,
    )


def _signals(bus: Bus, own: Rooms) -> SignalHandlers:
    return SignalHandlers(
        bus,
        own.budgets,
        families=own.families,
        signal_share=own.signal_share,
        approvals=own.approvals,
        parked_signals=own.parked_signals,
        client_results=ClientResults(bus),
    )


def _settlements(bus: Bus, own: Rooms) -> SettlementHandlers:
    return SettlementHandlers(
        bus,
        own.budgets,
        usage=own.usage,
        session_caches=own.session_caches,
        turns=own.turns,
        families=own.families,
        ticket_lanes=own.lanes,
        latest=own.results,
        extractions=own.extractions,
        places=own.places,
    )
