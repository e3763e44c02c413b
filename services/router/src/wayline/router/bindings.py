"""Which handler hears what."""

from __future__ import annotations

from functools import partial
from typing import Any

from wayline.chassis import Ask, Bus, Delivery, Failpoint, Work, asks, reach
from wayline.chassis.topology import ADVISORY_ROUTER, APPROVALS_ROUTER, LATER_ROUTER, SIGNALS_ROUTER, SUBMIT_ROUTER
from wayline.contracts import (
    agent_labels,
    agents,
    budgets,
    models,
    run_controls,
    schedules,
    sessions,
    tenant_settings,
    tenants,
)
from wayline.contracts.errors import InvalidMessage
from wayline.contracts.forgetting import Forget, GetForgetting
from wayline.contracts.jobs import (
    CheckAgent,
    DecideApproval,
    Due,
    GetLatestRun,
    PlanJob,
    Signal,
    StartChild,
    SubmitJob,
    WakeJob,
)
from wayline.contracts.tool_use import FindAgentsUsing
from wayline.router.admission.read_submission import job_id_of
from wayline.router.advisories import Advisory, put_aside
from wayline.router.agents.handlers import AgentHandlers
from wayline.router.models.handlers import ModelHandlers
from wayline.router.money.handlers import MoneyHandlers
from wayline.router.permits.handlers import PermitHandlers
from wayline.router.schedules.handlers import ScheduleHandlers
from wayline.router.sessions.handlers import SessionHandlers
from wayline.router.tenants.handlers import TenantHandlers
from wayline.router.wiring import Handlers, Rooms
from wayline.telemetry import JobTrace


def work_of(bus: Bus, rooms: Rooms, handlers: Handlers, *, slots: int) -> list[Work[Any]]:
    """Return what is done with each message of the router's queues."""
    return [
        Work(
            SUBMIT_ROUTER,
            SubmitJob,
            handlers.submissions.on_submit,
            slots=slots,
            job_trace=_trace_of_submission,
            begun=rooms.begun,
            before_dead=handlers.submissions.on_refused,
            after_publish=partial(reach, Failpoint.ROUTER_TICKET_AFTER),
            after_ack=partial(reach, Failpoint.ROUTER_ACK_AFTER),
        ),
        Work(
            SIGNALS_ROUTER,
            Signal,
            handlers.signals.on_signal,
            begun=rooms.begun,
            before_dead=rooms.approvals.refuse,
            job_trace=lambda signal, _: JobTrace.of(signal.tenant, signal.job_id),
            after_publish=partial(reach, Failpoint.ROUTER_WAKE_AFTER),
        ),
        Work(
            APPROVALS_ROUTER,
            DecideApproval,
            handlers.signals.on_decide_approval,
            begun=rooms.begun,
            before_dead=rooms.approvals.refuse,
            job_trace=lambda decided, _: JobTrace.of(decided.tenant, decided.job_id),
            after_publish=partial(reach, Failpoint.ROUTER_WAKE_AFTER),
        ),
        Work(
            LATER_ROUTER,
            Due,
            handlers.signals.on_due,
            job_trace=lambda due, _: JobTrace.of(due.tenant, due.job_id),
            after_publish=partial(reach, Failpoint.ROUTER_EXPIRE_AFTER),
        ),
        Work(ADVISORY_ROUTER, Advisory, partial(put_aside, bus)),
    ]


def asks_of(handlers: Handlers) -> list[Ask[Any]]:
    """Return what answers each request on the bus."""
    return [
        asks(PlanJob, handlers.routes.on_plan),
        asks(CheckAgent, handlers.routes.on_check),
        asks(budgets.SettleJob, handlers.settlements.on_settle),
        asks(StartChild, handlers.children.on_start),
        asks(WakeJob, handlers.signals.on_wake),
        asks(GetLatestRun, handlers.results.on_get_latest),
        asks(Forget, handlers.forgetting.on_forget),
        asks(GetForgetting, handlers.forgetting.on_get),
        asks(tenant_settings.GetSettings, handlers.settings.on_get),
        asks(tenant_settings.ChangeSettings, handlers.settings.on_change),
        *_asks_about_agents(handlers.agents),
        *_asks_about_models(handlers.models),
        *_asks_about_money(handlers.money),
        *_asks_about_permits(handlers.permits),
        *_asks_about_tenants(handlers.tenants),
        *_asks_about_sessions(handlers.sessions),
        *_asks_about_schedules(handlers.schedules),
    ]


def _asks_about_agents(saved: AgentHandlers) -> list[Ask[Any]]:
    return [
        asks(agents.GetAgent, saved.on_get),
        asks(agents.ListAgents, saved.on_list),
        asks(agents.ListAgentVersions, saved.on_list_versions),
        asks(agents.GetAgentVersion, saved.on_get_version),
        asks(agents.PutAgent, saved.on_put),
        asks(agents.DeleteAgent, saved.on_delete),
        asks(agents.RestoreAgent, saved.on_restore),
        asks(agent_labels.PutAgentLabel, saved.on_put_label),
        asks(agent_labels.DeleteAgentLabel, saved.on_delete_label),
        asks(FindAgentsUsing, saved.on_find_using),
    ]


def _asks_about_models(cards: ModelHandlers) -> list[Ask[Any]]:
    return [
        asks(models.ListModels, cards.on_list),
        asks(models.PutModel, cards.on_put),
        asks(models.DeleteModel, cards.on_delete),
    ]


def _asks_about_money(money: MoneyHandlers) -> list[Ask[Any]]:
    return [
        asks(budgets.ExtendBudget, money.on_extend),
        asks(budgets.HoldCharge, money.on_hold_charge),
        asks(budgets.ChargeBudgets, money.on_charge),
        asks(budgets.ReleaseBudget, money.on_release),
        asks(budgets.ListBudgets, money.on_list),
        asks(budgets.PutBudget, money.on_put),
        asks(budgets.DeleteBudget, money.on_delete),
    ]


def _asks_about_permits(running: PermitHandlers) -> list[Ask[Any]]:
    return [
        asks(run_controls.PutPause, running.on_put_pause),
        asks(run_controls.ListPauses, running.on_list_pauses),
        asks(run_controls.EndPause, running.on_end_pause),
        asks(run_controls.PutRunningLimit, running.on_put_limit),
        asks(run_controls.ListRunningLimits, running.on_list_limits),
        asks(run_controls.DeleteRunningLimit, running.on_delete_limit),
        asks(run_controls.AskPermit, running.on_ask),
        asks(run_controls.CheckPlace, running.on_check),
        asks(run_controls.NoteParked, running.on_parked),
    ]


def _asks_about_tenants(known: TenantHandlers) -> list[Ask[Any]]:
    return [
        asks(tenants.CreateTenant, known.on_create),
        asks(tenants.GetTenant, known.on_get),
        asks(tenants.ListTenants, known.on_list),
        asks(tenants.DisableTenant, known.on_disable),
        asks(tenants.EnableTenant, known.on_enable),
        asks(tenants.SetTenantWeight, known.on_set_weight),
        asks(tenants.NoteStored, known.on_note_stored),
    ]


def _asks_about_sessions(kept: SessionHandlers) -> list[Ask[Any]]:
    return [
        asks(sessions.ListSessions, kept.on_list),
        asks(sessions.GetSession, kept.on_get),
        asks(sessions.DeleteSession, kept.on_delete),
    ]


def _asks_about_schedules(planned: ScheduleHandlers) -> list[Ask[Any]]:
    return [
        asks(schedules.PutSchedule, planned.on_put),
        asks(schedules.EnableSchedule, planned.on_enable),
        asks(schedules.GetSchedule, planned.on_get),
        asks(schedules.ListSchedules, planned.on_list),
        asks(schedules.DeleteSchedule, planned.on_delete),
        asks(schedules.RunSchedule, planned.on_run),
    ]


def _trace_of_submission(job: SubmitJob, delivery: Delivery) -> JobTrace | None:
    try:
        return JobTrace.of(job.tenant, job_id_of(job.job_id, delivery))
    except InvalidMessage:
        return None
