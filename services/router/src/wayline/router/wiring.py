"""The router's adapters and handlers, each made from those that it needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from wayline.chassis import Bus, Part
from wayline.router.admission.admission_table import Tables
from wayline.router.agents.bundled import bundled
from wayline.router.agents.handlers import AgentHandlers
from wayline.router.jobs.approvals import Approvals
from wayline.router.jobs.families import Families
from wayline.router.jobs.first_records import FirstRecords
from wayline.router.jobs.handlers.children import ChildHandlers
from wayline.router.jobs.handlers.settlements import SettlementHandlers
from wayline.router.jobs.handlers.signals import SignalHandlers
from wayline.router.jobs.handlers.submissions import SubmissionHandlers
from wayline.router.jobs.parked_signals import ParkedSignals
from wayline.router.jobs.result_table import LatestResults
from wayline.router.models.attachments import AttachmentLimits, Attachments
from wayline.router.models.availability import Availability
from wayline.router.models.catalogue import Catalogue
from wayline.router.models.handlers import ModelHandlers
from wayline.router.money.budget_table import Budgets
from wayline.router.money.lost_charges import LostCharges
from wayline.router.money.waking import Waker
from wayline.router.routes.routes import Routes
from wayline.router.routes.session_caches import SessionCaches
from wayline.router.routes.usage import Usage
from wayline.router.schedules.firings import Firings
from wayline.router.schedules.handlers import ScheduleLimits, Schedules
from wayline.router.sessions.accepted_order import AcceptedOrder
from wayline.router.sessions.turns import Turns
from wayline.router.settings import Settings
from wayline.router.tenants.settings_table import SettingsTable
from wayline.router.tenants.shares import ShareLimits, Shares
from wayline.router.tenants.signal_share import SignalShare
from wayline.router.tenants.tenant_table import Tenants
from wayline.router.ticket_lanes import TicketLanes
from wayline.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapters:
    """What the router keeps in Postgres and on the bus, by subject."""

    accepted_order: AcceptedOrder
    approvals: Approvals
    attachments: Attachments
    availability: Availability
    budgets: Budgets
    catalogue: Catalogue
    families: Families
    firings: Firings
    latest: LatestResults
    lanes: TicketLanes
    parked_signals: ParkedSignals
    schedules: Schedules
    session_caches: SessionCaches
    settings: SettingsTable
    shares: Shares
    signal_share: SignalShare
    tables: Tables
    tenants: Tenants
    turns: Turns
    usage: Usage
    waker: Waker

    @classmethod
    def of(cls, bus: Bus, store: Store, settings: Settings, *, signals_per_tenant_max: int) -> Self:
        """Make each from its settings; nothing runs yet."""
        shares = Shares(bus, store, _share_limits(settings))
        waker = Waker(bus, store, every_s=settings.budgets_every_s)
        lanes = TicketLanes(bus)
        firings = Firings(bus, store, every_s=settings.schedules_every_s, missed_max_s=settings.schedules_missed_max_s)
        return cls(
            accepted_order=AcceptedOrder(bus),
            approvals=Approvals(bus),
            attachments=Attachments(bus, AttachmentLimits(settings.files_max, settings.files_max_bytes)),
            availability=Availability(bus),
            budgets=Budgets(store, job_budget_usd=settings.job_budget_usd, changed=waker.look_now),
            catalogue=_catalogue(store, settings),
            families=Families(bus, store),
            firings=firings,
            latest=LatestResults(store),
            lanes=lanes,
            parked_signals=ParkedSignals(bus, lanes),
            schedules=Schedules(bus, store, firings, _schedule_limits(settings)),
            session_caches=SessionCaches(store),
            settings=SettingsTable(store, job_budget_usd=settings.job_budget_usd),
            shares=shares,
            signal_share=SignalShare(bus, most=signals_per_tenant_max),
            tables=_tables(store, settings),
            tenants=Tenants(store, bundled=bundled(), tenants_max=settings.tenants_max, why_full=shares.why_full),
            turns=Turns(bus, store, lanes, waiting_max=settings.turns_waiting_max),
            usage=Usage(store, every_s=settings.usage_every_s),
            waker=waker,
        )

    def parts(self) -> list[Part]:
        """Return those that run beside the handlers, and what looks for charges that no job settled."""
        lost_charges = LostCharges(self.budgets)
        return [
            *(self.waker, lost_charges, self.availability, self.usage),
            *(self.signal_share, self.shares, self.firings),
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Handlers:
    """What the router does with each message, by subject."""

    agents: AgentHandlers
    children: ChildHandlers
    models: ModelHandlers
    records: FirstRecords
    routes: Routes
    settlements: SettlementHandlers
    signals: SignalHandlers
    submissions: SubmissionHandlers

    @classmethod
    def of(cls, bus: Bus, own: Adapters, *, default_model: str) -> Self:
        """Give each handler the adapters that it needs."""
        routes = _routes(own, default_model)
        records = _first_records(bus, own, routes)
        return cls(
            agents=AgentHandlers(own.tables, own.catalogue, own.attachments),
            children=ChildHandlers(bus, records, own.families, own.lanes),
            models=ModelHandlers(own.tables, own.catalogue),
            records=records,
            routes=routes,
            settlements=_settlements(bus, own),
            signals=_signals(bus, own),
            submissions=_submissions(bus, own, records),
        )


def _share_limits(settings: Settings) -> ShareLimits:
    return ShareLimits(settings.stored_per_tenant_max_bytes, settings.unfinished_per_tenant_max)


def _schedule_limits(settings: Settings) -> ScheduleLimits:
    return ScheduleLimits(settings.schedules_max, settings.schedules_least_interval_s)


def _catalogue(store: Store, settings: Settings) -> Catalogue:
    return Catalogue(
        store, reachable=settings.reachable(), fresh_s=settings.models_fresh_s, own_max=settings.models_max
    )


def _tables(store: Store, settings: Settings) -> Tables:
    return Tables(
        store,
        tenants_fresh_s=settings.tenants_fresh_s,
        job_budget_usd=settings.job_budget_usd,
        turns_waiting_max=settings.turns_waiting_max,
    )


def _routes(own: Adapters, default_model: str) -> Routes:
    return Routes(
        own.tables,
        own.catalogue,
        attachments=own.attachments,
        session_caches=own.session_caches,
        availability=own.availability,
        usage=own.usage,
        default_model=default_model,
    )


def _first_records(bus: Bus, own: Adapters, routes: Routes) -> FirstRecords:
    return FirstRecords(
        bus,
        own.tables,
        own.budgets,
        routes=routes,
        shares=own.shares,
        turns=own.turns,
        families=own.families,
        firings=own.firings,
        latest=own.latest,
        accepted_order=own.accepted_order,
    )


def _submissions(bus: Bus, own: Adapters, records: FirstRecords) -> SubmissionHandlers:
    return SubmissionHandlers(
        bus,
        own.tables,
        records,
        shares=own.shares,
        turns=own.turns,
        ticket_lanes=own.lanes,
        firings=own.firings,
        latest=own.latest,
        accepted_order=own.accepted_order,
        parked_signals=own.parked_signals,
    )


def _signals(bus: Bus, own: Adapters) -> SignalHandlers:
    return SignalHandlers(
        bus,
        own.budgets,
        families=own.families,
        signal_share=own.signal_share,
        approvals=own.approvals,
        parked_signals=own.parked_signals,
    )


def _settlements(bus: Bus, own: Adapters) -> SettlementHandlers:
    return SettlementHandlers(
        bus,
        own.budgets,
        usage=own.usage,
        session_caches=own.session_caches,
        turns=own.turns,
        families=own.families,
        ticket_lanes=own.lanes,
        latest=own.latest,
    )
