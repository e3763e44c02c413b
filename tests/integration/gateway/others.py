"""The other services, as far as a gateway asks them anything."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from inspect import isawaitable
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from wayline.chassis import Bus, asks
from wayline.chassis.access.identity import STREAMS_ACCOUNT
from wayline.chassis.access.permissions import IDENTITIES
from wayline.chassis.handling.responder import Responder
from wayline.contracts import agent_labels as al
from wayline.contracts import agents as a
from wayline.contracts import budgets as b
from wayline.contracts import document_changes as dc
from wayline.contracts import feedback as fb
from wayline.contracts import forgetting as f
from wayline.contracts import knowledge as k
from wayline.contracts import mcp_servers as mcp
from wayline.contracts import memory as memories
from wayline.contracts import memory_consolidation as consolidation
from wayline.contracts import models as m
from wayline.contracts import overview as o
from wayline.contracts import replicas as rp
from wayline.contracts import run_controls as rc
from wayline.contracts import schedules as c
from wayline.contracts import server_logins as logins
from wayline.contracts import server_resources as sr
from wayline.contracts import sessions as s
from wayline.contracts import tenant_secrets
from wayline.contracts import tenant_settings as ts
from wayline.contracts import tenants as n
from wayline.contracts import tool_use as tu
from wayline.contracts import traces as t
from wayline.contracts import vector_sets as vs
from wayline.contracts import webhooks as wh
from wayline.contracts.base import Request
from wayline.contracts.job_tags import TaggedJobs, TagJobs
from wayline.contracts.jobs import AgentCheck, CheckAgent, GetLatestRun, PlanJob, Planned, Route, RunResult, Status
from wayline.contracts.received_spans import ReceiveSpans, SpansReceived
from wayline.contracts.searched_tools import FoundTool, FoundTools, SearchTools
from wayline.contracts.server_config import ServerConfig
from wayline.contracts.span_search import ListSpanNames, SearchSpans, SpanNames, SpanPage
from wayline.contracts.tools import CallTool, ListTools, ToolDefinition, ToolList, ToolReply
from wayline.telemetry import Telemetry
from wayline.testkit.guarded import Guarded

LABEL = al.AgentLabel(label="candidate", version=2, share=0.1)
AGENT = a.Agent(name="critic", version=2, config=a.AgentConfig(instructions="Be kind."), labels=(LABEL,))
VERSION = a.SavedVersion(version=2, saved_at=datetime(2026, 5, 1, tzinfo=UTC), saved_by="ci", changed=("style",))
CARD = m.ModelCard(
    provider="chat",
    model="acme/large:8b",
    tier="standard",
    prices=m.Prices(rates=m.Rates(input=Decimal("0.1"), output=Decimal("0.5"))),
)
BUDGET = b.Budget(name="month", limit_usd=Decimal("5"), spent_usd=Decimal("1.25"), left_usd=Decimal("3.75"))
REPLICA = rp.ReplicaState(
    name="executor-host-1", service="executor", version="0.2.0", needs={"bus": "ok"}, ready=True, in_hand=0
)
TENANT = n.Tenant(tenant="acme", created_at=datetime(2026, 5, 1, tzinfo=UTC))
DOCUMENT = k.Document(document_id="tides", name="tides.md", status=k.DocumentStatus.READY)
VECTORS = vs.VectorSetList(sets=(vs.VectorSet(set_id=1, model="small", state="live"),), models=("small",))
SECRET = tenant_secrets.SecretView(name="BANK_TOKEN", saved_at=datetime(2026, 5, 1, tzinfo=UTC), used_by=("bank",))
SESSION = s.SessionTurns(
    session_id="s-1",
    agent="critic",
    turns=0,
    created_at=datetime(2026, 5, 1, tzinfo=UTC),
    updated_at=datetime(2026, 5, 1, tzinfo=UTC),
)
PAUSE = rc.Pause(kind="agent", tenant="default", name="critic", by="ops", since=datetime(2026, 5, 1, tzinfo=UTC))
LIMIT = rc.RunningLimitInForce(tenant="default", whose="agent", name="critic", max_running=3, running=1, waiting=0)
FIRING = c.Firing(
    due_at=datetime(2026, 5, 1, tzinfo=UTC),
    decided_at=datetime(2026, 5, 1, tzinfo=UTC),
    cause="run",
    version=1,
    outcome="fired",
    job_id="j1",
)
SCHEDULE = c.Schedule(
    name="morning",
    version=1,
    cron="0 7 * * *",
    job=c.ScheduledJob(agent="critic", input="What is new?"),
    created_at=datetime(2026, 5, 1, tzinfo=UTC),
    updated_at=datetime(2026, 5, 1, tzinfo=UTC),
    firings=(FIRING,),
)
ROOT = t.Span(
    trace_id="a" * 32,
    span_id="b" * 16,
    parent_span_id=None,
    name="invoke_agent",
    service="executor",
    start=datetime(2026, 5, 1, tzinfo=UTC),
    duration_ms=12.5,
    status="ok",
)
SERVER = mcp.ServerView(
    name="bank",
    state=mcp.State.CONNECTED,
    config=ServerConfig(url="https://bank.example/mcp", headers={"X": SecretStr("s")}),
)
SAMPLES = Path(__file__).parents[3] / "proto/samples/replies"
FACT = memories.Fact.model_validate_json((SAMPLES / "Fact-1.json").read_bytes())
SUBJECT = memories.Subject.model_validate_json((SAMPLES / "Subject-1.json").read_bytes())
WEBHOOK = wh.SavedWebhook.model_validate_json((SAMPLES / "SavedWebhook-1.json").read_bytes())
DELIVERY = wh.WebhookDelivery.model_validate_json((SAMPLES / "WebhookDelivery-1.json").read_bytes())
FACTS = memories.FactPage(facts=(FACT,))
SAVED = memories.FactsSaved.model_validate_json((SAMPLES / "FactsSaved-1.json").read_bytes())
FORGETTING = f.Forgetting.model_validate_json((SAMPLES / "Forgetting-1.json").read_bytes())
CONSOLIDATED = consolidation.Consolidated.model_validate_json((SAMPLES / "Consolidated-1.json").read_bytes())
UNDONE = consolidation.ConsolidationUndone.model_validate_json((SAMPLES / "ConsolidationUndone-1.json").read_bytes())
RECALLED = memories.FactsRecalled(facts=(), matched=0, total=0)
ANSWERS: dict[type[Request], Any] = {
    CheckAgent: AgentCheck(
        instructions_tokens=12,
        route=Route(provider="chat", model="acme/large:8b", tier="standard", reason="it is the cheapest"),
    ),
    PlanJob: Planned(
        agent="critic", agent_version=2, route=Route(provider="p", model="m", tier="flash", reason="it is short")
    ),
    a.PutAgent: AGENT,
    a.GetAgent: AGENT,
    a.ListAgents: a.AgentList(agents=(AGENT,)),
    a.ListAgentVersions: a.AgentHistory(versions=(VERSION,)),
    a.GetAgentVersion: a.SavedAgent(name="critic", config=AGENT.config, **VERSION.model_dump()),
    a.RestoreAgent: AGENT,
    n.CreateTenant: TENANT,
    n.GetTenant: TENANT,
    n.ListTenants: n.TenantList(tenants=(TENANT,)),
    rp.DescribeReplicas: REPLICA,
    rp.DrainReplica: REPLICA,
    n.DisableTenant: TENANT,
    n.SetTenantWeight: TENANT,
    n.EnableTenant: TENANT,
    a.DeleteAgent: a.Deleted(deleted=True),
    al.PutAgentLabel: LABEL,
    al.DeleteAgentLabel: al.LabelRemoved(deleted=True),
    m.ListModels: m.ModelList(models=(CARD,), usable=(CARD.name,), own=(CARD.name,)),
    m.ListProviders: m.ProviderList(executor="h-1", providers=(m.Provider(name="chat", host="127.0.0.1"),)),
    m.PutModel: CARD,
    m.DeleteModel: m.ModelDeleted(deleted=True),
    wh.PutWebhook: WEBHOOK,
    wh.GetWebhook: WEBHOOK,
    wh.ListWebhooks: wh.WebhookList(webhooks=(WEBHOOK,)),
    wh.DeleteWebhook: wh.WebhookDeleted(deleted=True),
    wh.RotateWebhook: WEBHOOK,
    wh.TestWebhook: DELIVERY,
    wh.ListWebhookDeliveries: wh.WebhookDeliveryList(deliveries=(DELIVERY,)),
    wh.GetWebhookDelivery: DELIVERY,
    wh.Redeliver: wh.Redelivered(deliveries=1),
    CallTool: ToolReply(status="success", content="42"),
    ListTools: ToolList(tools=(ToolDefinition(name="search_knowledge"),)),
    SearchTools: FoundTools(tools=(FoundTool(tool=ToolDefinition(name="bank__rate"), score=2.5),), searched=9),
    mcp.PutServer: SERVER,
    mcp.GetServer: SERVER,
    mcp.ListServers: mcp.ServerList(servers=(SERVER,)),
    mcp.DeleteServer: mcp.ServerDeleted(deleted=True),
    mcp.EnableServer: SERVER,
    mcp.ApproveDefinitions: SERVER,
    logins.AuthorizeServer: logins.AuthorizationUrl(url="https://login.example/authorize"),
    logins.GetLogin: logins.LoginView(name="bank", user_id="alice", authorization_server="login.example"),
    logins.OpenLogin: logins.AuthorizationUrl(url="https://login.example/authorize?state=acme.s1"),
    logins.FinishAuthorization: logins.ServerAuthorized(name="bank"),
    vs.GetVectorSets: VECTORS,
    vs.BuildVectors: VECTORS,
    vs.SwitchVectors: VECTORS,
    vs.UndoVectors: VECTORS,
    logins.ForgetUser: logins.UserForgotten(servers=("bank",)),
    logins.ListLogins: logins.LoginPage(
        logins=(logins.ServerLogin(user_id="alice", logged_in_at=datetime(2026, 5, 1, tzinfo=UTC)),)
    ),
    logins.ForgetAuthorization: logins.AuthorizationForgotten(forgotten=True),
    tenant_secrets.PutSecret: SECRET,
    tenant_secrets.ListSecrets: tenant_secrets.SecretList(secrets=(SECRET,)),
    tenant_secrets.RotateSecrets: tenant_secrets.SecretRotation(newest="new", encrypted=2, left={"old": 1}),
    tenant_secrets.DeleteSecret: tenant_secrets.SecretDeleted(deleted=True),
    mcp.GetImpact: mcp.ServerImpact(
        name="bank",
        since=datetime(2026, 5, 1, tzinfo=UTC),
        tools=(),
        agents_total=0,
        agents=(),
        parked_total=0,
        parked=(),
        calls=0,
        jobs=0,
        would_fail=0,
        unchecked=0,
        failing=(),
    ),
    sr.ListServerResources: sr.ServerResources(resources=(sr.ServerResource(uri="note://tides"),), resources_total=1),
    sr.ReadServerResource: sr.ResourceContents(contents=(sr.ResourcePart(uri="note://tides", text="high"),)),
    sr.ListServerPrompts: sr.ServerPrompts(prompts=(sr.ServerPrompt(name="summary"),), prompts_total=1),
    sr.FillServerPrompt: sr.FilledPrompt(
        messages=(sr.FilledMessage(role="user", content={"type": "text", "text": "Sum it up."}),)
    ),
    mcp.TryServer: mcp.ServerReport(ok=True, server="bank"),
    mcp.TrySavedServer: mcp.ServerReport(ok=True, server="bank"),
    k.AcceptDocument: DOCUMENT,
    k.GetDocument: DOCUMENT,
    k.ListDocuments: k.DocumentPage(documents=(DOCUMENT,)),
    k.ReserveUpload: k.UploadReserved(),
    dc.ChangeDocument: DOCUMENT,
    dc.ListChunks: dc.ChunkPage(chunks=()),
    k.DeleteDocument: k.DocumentDeleted(document_id="tides", chunks_deleted=2),
    k.EmbedTexts: k.EmbeddedTexts(model="m", vectors=("AACAPw==",)),
    k.SearchKnowledge: k.SearchResult(hits=(), mode="hybrid"),
    t.GetTrace: t.Trace(
        trace_id="a" * 32, job_id="j1", root=ROOT, totals=t.Totals(duration_ms=12.5, tokens=3, cost_usd=None)
    ),
    t.GetSteps: t.StepList(job_id="j1", steps=(t.Step(step=1, status="success"),)),
    t.GetCosts: lambda asked: t.CostTable(rows=(), filtered_by=asked.newer_conditions),
    t.GetSessionCosts: t.CostTable(rows=()),
    GetLatestRun: RunResult(agent="critic", user_id="ann", job_id="j1", status=Status.QUEUED),
    tu.GetToolFigures: tu.ToolFigures(calls=3, jobs=2, failed={"tool_failed": 1}, p50_ms=12.0, p95_ms=80.0),
    tu.GetAllToolFigures: tu.AllToolFigures(tools=(tu.NamedToolFigures(tool="pay", calls=3, failed=1, p95_ms=80.0),)),
    tu.FindAgentsUsing: tu.AgentsUsing(total=1, agents=(tu.AgentVersion(name="critic", version=2),), versions=()),
    tu.GetAgentsToolUse: tu.AgentsToolUse(agents=()),
    t.ListJobs: t.JobPage(jobs=()),
    ReceiveSpans: SpansReceived(stored=1),
    SearchSpans: SpanPage.model_validate_json((SAMPLES / "SpanPage-1.json").read_bytes()),
    ListSpanNames: SpanNames.model_validate_json((SAMPLES / "SpanNames-1.json").read_bytes()),
    o.GetJobsOverview: o.JobsOverview(open=(), spent=()),
    fb.GiveFeedback: fb.Feedback(by="ann", key="feedback", score=1.0, label="up", at=datetime(2026, 5, 1, tzinfo=UTC)),
    TagJobs: TaggedJobs(job_ids=("j1",)),
    fb.ListFeedback: fb.FeedbackList(feedback=()),
    t.FindQueuePlaces: t.QueuePlaces(places=()),
    s.ListSessions: s.SessionPage(sessions=(SESSION,)),
    s.GetSession: SESSION,
    ts.GetSettings: ts.SettingsInForce(),
    ts.ChangeSettings: ts.SettingsInForce(max_steps=8),
    s.DeleteSession: s.SessionDeleted(deleted=True),
    rc.PutPause: PAUSE,
    rc.ListPauses: rc.PauseList(pauses=(PAUSE,)),
    rc.EndPause: rc.PauseEnded(ended=True),
    rc.CheckPlace: rc.Permit(granted=True),
    rc.PutRunningLimit: LIMIT,
    rc.ListRunningLimits: rc.RunningLimitList(limits=(LIMIT,)),
    rc.DeleteRunningLimit: rc.RunningLimitDeleted(deleted=True),
    c.PutSchedule: SCHEDULE,
    c.EnableSchedule: SCHEDULE,
    c.GetSchedule: SCHEDULE,
    c.ListSchedules: c.ScheduleList(schedules=(SCHEDULE,)),
    c.DeleteSchedule: c.ScheduleDeleted(deleted=True),
    c.RunSchedule: FIRING,
    b.ListBudgets: b.BudgetList(budgets=(BUDGET,), job_budget_usd=Decimal("0.10")),
    b.PutBudget: BUDGET,
    b.DeleteBudget: b.BudgetDeleted(deleted=True),
    f.Forget: FORGETTING,
    f.GetForgetting: FORGETTING,
    memories.SaveMemories: SAVED,
    memories.RecallMemories: RECALLED,
    memories.ListMemories: FACTS,
    memories.ChangeMemory: FACT,
    memories.ForgetMemories: memories.MemoriesForgotten(facts=1),
    consolidation.ConsolidateMemories: CONSOLIDATED,
    consolidation.UndoConsolidation: UNDONE,
    memories.StoreInsights: SAVED,
    memories.RecallInsights: RECALLED,
    memories.ListInsights: FACTS,
    memories.ChangeInsight: FACT,
    memories.PutSubject: SUBJECT,
    memories.GetSubject: SUBJECT,
    memories.ListSubjects: memories.SubjectPage(subjects=(SUBJECT,)),
    memories.DeleteSubject: memories.SubjectDeleted(type="client", id="acme", insights_deleted=1),
}


HEARD = {rp.DescribeReplicas: "replicas.list.executor.*", rp.DrainReplica: "replicas.drain.executor.*"}
"""Of requests that every service hears about itself: here the executor's."""


class Others:
    """What each request is answered with, and what was asked."""

    def __init__(self, bus: Bus, nats: Guarded) -> None:
        self._bus = bus
        self._nats = nats
        self._buses: dict[str, Bus] = {}
        self._running: list[Responder[Any]] = []
        self.asked: list[Request] = []

    async def answer(self, kind: type[Request], with_: Any = None, *, everyone: bool = False) -> None:
        """Answer with a model, with what a function makes of the request, or by raising an error."""
        with_ = ANSWERS[kind] if with_ is None else with_

        async def handle(asked: Request) -> Any:
            self.asked.append(asked)
            reply = with_(asked) if callable(with_) else with_
            reply = await reply if isawaitable(reply) else reply
            if isinstance(reply, Exception):
                raise reply
            return reply

        bus = await self._bus_of(kind)
        ask = replace(asks(kind, handle, everyone=everyone), subject=HEARD.get(kind))
        responder = Responder(bus, Telemetry("others"), ask)
        await responder.start()
        await bus.settled()
        self._running.append(responder)

    async def _bus_of(self, kind: type[Request]) -> Bus:
        """The bus as whoever answers a request sees it: a service with an account of its own is asked there."""
        owner = next(one for one in IDENTITIES.values() if HEARD.get(kind, kind.listens()) in one.answers)
        if owner.account == STREAMS_ACCOUNT:
            return self._bus
        if owner.name not in self._buses:
            settings = self._nats.settings(owner.name)
            self._buses[owner.name] = await Bus.connect(settings, service=owner.name, exit_when_closed=False)
        return self._buses[owner.name]

    async def answer_everything(self) -> None:
        for kind in ANSWERS:
            await self.answer(kind)

    async def stop(self) -> None:
        for responder in self._running:
            await responder.stop(1)
        for bus in self._buses.values():
            await bus.close()
