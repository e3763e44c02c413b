"""What other services answer, shown over HTTP: documents, search, agents, tools, traces, costs, dead letters."""

from __future__ import annotations

import asyncio
from base64 import b64decode, b64encode
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from hashlib import sha256
from typing import Any
from urllib.parse import quote

import pytest
import pytest_asyncio

from wayline.chassis import Bus
from wayline.contracts import headers as h
from wayline.contracts import traces as t
from wayline.contracts.agents import Agent, AgentConfig, DeleteAgent, GetAgent, ListAgents, PutAgent
from wayline.contracts.budgets import BudgetAlert, BudgetConfig, BudgetList, DeleteBudget, ListBudgets, PutBudget
from wayline.contracts.chat import Citation
from wayline.contracts.document_changes import ChangeDocument, ChunkPage, ListChunks
from wayline.contracts.errors import NotFound, Reject
from wayline.contracts.jobs import JobView, Status
from wayline.contracts.knowledge import (
    AcceptDocument,
    DeleteDocument,
    Document,
    DocumentDeleted,
    DocumentPage,
    DocumentStatus,
    GetDocument,
    IndexDocument,
    ListDocuments,
    SearchKnowledge,
    SearchResult,
)
from wayline.contracts.models import (
    DeleteModel,
    ListModels,
    ListProviders,
    ModelLeftAlone,
    Provider,
    ProviderList,
    PutModel,
)
from wayline.contracts.overview import GetJobsOverview, JobsOverview, OpenJobs
from wayline.contracts.searched_tools import SearchTools
from wayline.contracts.span_search import FoundSpan, SearchSpans, SpanPage
from wayline.contracts.tools import ListTools
from wayline.gateway.handlers.administration.models import Providers
from wayline.testkit import Platform, until

from .conftest import Running, start_gateway
from .others import AGENT, ANSWERS, BUDGET, CARD, Others

pytestmark = [pytest.mark.asyncio(loop_scope="module")]


@pytest.fixture
def gateway(shared_gateway: Running) -> Running:
    return shared_gateway


@pytest.fixture
def others(shared_others: Others) -> Others:
    return shared_others


@pytest_asyncio.fixture(loop_scope="module")
async def bus(module_platform: Platform) -> Bus:
    """The bus as the other services see it, without the documents and the dead letters of the test before.

    It still knows which versions were sent: each test names a document of its own.
    """
    for stream in ("INDEX", "DEAD"):
        await module_platform.bus.js.purge_stream(stream)
    return module_platform.bus


async def indexed(bus: Bus) -> list[IndexDocument]:
    state = (await bus.js.stream_info("INDEX")).state
    raw = [await bus.js.get_msg("INDEX", n) for n in range(max(1, state.first_seq), state.last_seq + 1)]
    found = []
    for message in raw:
        body = message.data or b""
        whole = await bus.uploads.check_out(body) if b'"$claim"' in body else body
        found.append(IndexDocument.from_wire(whole, message.subject or ""))
    return found


async def test_a_text_document_is_queued_though_retrieval_is_away(gateway: Running, bus: Bus):
    document = {"name": "tides.md", "text": "The moon.", "metadata": {"book": 1}, "document_id": "tides"}

    answer = await gateway.client.post("/v1/documents", json=document)

    assert (answer.status_code, answer.headers["location"]) == (202, "/v1/documents/tides")
    assert (answer.json()["status"], answer.json()["size_bytes"]) == ("queued", 9)
    assert await indexed(bus) == [IndexDocument(tenant="default", media_type="text/markdown", **document)]


async def test_a_file_is_queued_byte_for_byte(gateway: Running, bus: Bus):
    content = bytes(range(256)) * 8_192

    answer = await gateway.client.post(
        "/v1/documents",
        files={"file": ("scan.pdf", content, "application/octet-stream")},
        data={"metadata": '{"page": 3}'},
    )

    assert (answer.status_code, answer.json()["size_bytes"]) == (202, len(content))
    (document,) = await indexed(bus)
    assert (document.name, document.media_type, document.metadata) == ("scan.pdf", "application/pdf", {"page": 3})
    assert b64decode(document.content_base64 or "") == content


async def test_a_document_above_the_job_limit_is_accepted(gateway: Running, bus: Bus):
    answer = await gateway.client.post("/v1/documents", json={"name": "long.txt", "text": "x" * 9_000_000})

    assert answer.status_code == 202
    assert len((await indexed(bus))[0].text or "") == 9_000_000


async def test_an_equal_document_is_queued_again_only_after_its_deletion(gateway: Running, bus: Bus, others: Others):
    document = {"name": "tides.md", "text": "The moon.", "document_id": "equal"}
    known = ready("equal", "The moon.")
    await others.answer(AcceptDocument, known)
    answers: list[Any] = [known, NotFound("document", "equal")]
    await others.answer(GetDocument, lambda _: answers.pop(0))

    await gateway.client.post("/v1/documents", json=document)
    await gateway.client.post("/v1/documents", json=document)
    once = len(await indexed(bus))
    await gateway.client.post("/v1/documents", json=document)

    assert (once, len(await indexed(bus))) == (1, 2)


def ready(document_id: str, text: str) -> Document:
    """Return a document with this content, as retrieval shows it once it can be searched."""
    digest = sha256(text.encode()).hexdigest()
    known = Document(document_id=document_id, name="tides.md", media_type="text/markdown", sha256=digest)
    return known.model_copy(update={"status": DocumentStatus.READY})


async def test_a_version_that_comes_back_after_another_is_queued_again(gateway: Running, bus: Bus, others: Others):
    await others.answer(AcceptDocument)
    await others.answer(GetDocument, ready("again", "The sun."))

    for text in ("The moon.", "The sun.", "The moon."):
        document = {"name": "tides.md", "text": text, "document_id": "again"}
        assert (await gateway.client.post("/v1/documents", json=document)).status_code == 202

    assert [document.text for document in await indexed(bus)] == ["The moon.", "The sun.", "The moon."]


async def test_each_document_version_is_noted_with_its_sequence(gateway: Running, bus: Bus, others: Others):
    await others.answer(AcceptDocument)
    before = (await bus.js.stream_info("INDEX")).state.last_seq

    for text in ("The moon.", "The sun."):
        await gateway.client.post("/v1/documents", json={"name": "tides.md", "text": text, "document_id": "noted"})

    assert [asked.sequence for asked in others.asked if isinstance(asked, AcceptDocument)] == [before + 1, before + 2]


async def test_waiting_for_a_document_returns_it_ready(gateway: Running, others: Others):
    queued = Document(document_id="tides", name="tides.md")
    ready = queued.model_copy(update={"status": DocumentStatus.READY, "chunks_done": 2, "chunks_total": 2})
    await others.answer(AcceptDocument, queued)
    answers = [queued, queued, ready]
    await others.answer(GetDocument, lambda _: answers.pop(0))

    answer = await gateway.client.post("/v1/documents?wait=20", json={"name": "tides.md", "text": "The moon."})

    assert (answer.status_code, answer.json()["status"], answer.json()["chunks_done"]) == (200, "ready", 2)


async def test_a_search_is_asked_for_the_callers_tenant(gateway: Running, others: Others):
    await others.answer(SearchKnowledge, SearchResult(hits=(), mode="hybrid", note="only stop words"))

    answer = await gateway.client.post(
        "/v1/search", json={"query": "the", "top_k": 3, "filter": {"metadata": {"book": 1}}}
    )

    assert (answer.status_code, answer.json()["note"]) == (200, "only stop words")
    (asked,) = others.asked
    assert isinstance(asked, SearchKnowledge)
    assert (asked.tenant, asked.query, asked.top_k, asked.filter.metadata) == ("default", "the", 3, {"book": 1})
    assert asked.vector_weight is None, "what the embedding model is worth"


async def test_agents_are_saved_shown_and_retired(gateway: Running, others: Others):
    for kind in (PutAgent, ListAgents, DeleteAgent):
        await others.answer(kind)
    await others.answer(GetAgent, lambda asked: AGENT if asked.name == "critic" else NotFound("agent", asked.name))
    shown = AGENT.model_dump(mode="json")

    saved = await gateway.client.put("/v1/agents/critic", json={"instructions": "Be kind."})

    assert (saved.status_code, saved.json()) == (200, shown)
    saving = PutAgent(tenant="default", name="critic", config=AGENT.config, by="local")
    assert others.asked == [GetAgent(tenant="default", name="critic"), saving]
    assert (await gateway.client.get("/v1/agents/critic")).json() == shown
    assert (await gateway.client.get("/v1/agents")).json() == {"agents": [shown], "next_cursor": None}
    assert (await gateway.client.delete("/v1/agents/critic")).json() == {"deleted": True}
    assert (await gateway.client.get("/v1/agents/nobody")).json()["detail"] == "no agent 'nobody'"


async def test_models_are_listed_shown_put_and_deleted_under_names_with_slashes(gateway: Running, others: Others):
    for kind in (ListModels, PutModel, DeleteModel):
        await others.answer(kind)
    shown, at = CARD.model_dump(mode="json"), "/v1/models/chat/acme/large:8b"

    saved = await gateway.client.put(at, json=shown)

    assert (saved.status_code, saved.json()) == (200, shown)
    assert (await gateway.client.get("/v1/models")).json()["models"] == [shown]
    assert (await gateway.client.get(at)).json() == shown
    assert (await gateway.client.delete(at)).json() == {"deleted": True}
    assert others.asked == [
        # What is changed is read first: the audit has its tag.
        ListModels(tenant="default", fresh=True),
        PutModel(tenant="default", card=CARD),
        ListModels(tenant="default"),
        ListModels(tenant="default"),
        ListModels(tenant="default", fresh=True),
        DeleteModel(tenant="default", provider="chat", model="acme/large:8b"),
    ]
    missing = await gateway.client.get("/v1/models/chat/acme/small")
    assert (missing.status_code, missing.json()["detail"]) == (404, "no model 'chat/acme/small'")


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"prices": {"rates": {"input": 1, "output": 1, "cache_raed": 0}}}, "body.prices.rates.cache_raed"),
        ({"tier": "best"}, "body.tier"),
        ({"prices": {"rates": {"input": -1, "output": 1}}}, "body.prices.rates.input"),
        ({"model": "another"}, "the path names chat/acme/large:8b, the body chat/another"),
    ],
)
async def test_a_card_with_a_mistake_is_refused_with_its_place(
    gateway: Running, others: Others, change: dict[str, Any], place: str
):
    await others.answer(PutModel)
    card = {"provider": "chat", "model": "acme/large:8b", "tier": "flash", **change}

    answer = await gateway.client.put("/v1/models/chat/acme/large:8b", json=card)

    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")
    assert place in answer.json()["detail"]
    assert others.asked == []


async def test_a_wrong_method_is_answered_with_the_allowed_ones(gateway: Running):
    answer = await gateway.client.patch("/v1/models/chat/acme/large:8b", json={})

    assert (answer.status_code, answer.headers["allow"]) == (405, "DELETE, GET, PUT")
    # Beside it stands a route that only refuses ids that are none.
    passages = await gateway.client.put("/v1/documents/doc_1/chunks", json={})
    assert (passages.status_code, passages.headers["allow"]) == (405, "GET")


async def test_a_filter_without_a_value_is_refused_and_not_asked(gateway: Running, others: Others):
    answer = await gateway.client.get("/v1/documents?collection=")

    assert (answer.status_code, others.asked) == (422, [])


async def test_providers_are_listed_per_executor_and_in_common(gateway: Running, others: Others):
    chat, openai = Provider(name="chat", host="127.0.0.1"), Provider(name="openai", host="gpt.internal")
    one = ProviderList(executor="h-1", providers=(chat, openai))
    another = ProviderList(executor="h-2", providers=(chat,))
    for told in (another, one):
        await others.answer(ListProviders, told, everyone=True)

    answer = await gateway.client.get("/v1/providers")

    assert answer.status_code == 200
    assert Providers.model_validate(answer.json()) == Providers(providers=(chat,), executors=(one, another))


async def test_only_a_tenants_own_models_are_told_to_be_left_alone(gateway: Running, others: Others):
    await others.answer(ListModels)
    own = "chat/acme/large:8b"
    for executor, pause_s in (("h-1", 3.0), ("h-2", 12.0)):
        told = tuple(ModelLeftAlone(model=one, why="held", retry_after_s=pause_s) for one in (own, "chat/globex/own"))
        one = ProviderList(executor=executor, providers=(), left_alone=told)
        await others.answer(ListProviders, one, everyone=True)

    answer = await gateway.client.get("/v1/providers")

    assert answer.json()["left_alone"] == [{"model": own, "why": "held", "retry_after_s": 12.0}]
    assert "globex" not in answer.text


async def test_a_nearly_right_path_is_a_404_problem(gateway: Running):
    for path in ("/v1/models/chat", "/v1/jobs/", "/v1/budgets/"):
        answer = await gateway.client.get(path)
        assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json"), path


async def test_tools_are_listed(gateway: Running, others: Others):
    await others.answer(ListTools)

    assert [tool["name"] for tool in (await gateway.client.get("/v1/tools")).json()["tools"]] == ["search_knowledge"]


async def test_tools_are_searched_as_an_agent_would_find_them(gateway: Running, others: Others):
    await others.answer(SearchTools)
    config = AgentConfig(tools=("bank__*",), tools_off=("bank__pay",))
    await others.answer(GetAgent, Agent(name="critic", version=2, config=config))

    anybody = await gateway.client.post("/v1/tools/search", json={"query": "what is a franc worth?"})
    critic = await gateway.client.post(
        "/v1/tools/search", json={"query": "what is a franc worth?", "agent": "critic", "max_results": 2}
    )
    empty = await gateway.client.post("/v1/tools/search", json={"query": ""})

    assert [one["tool"]["name"] for one in anybody.json()["tools"]] == ["bank__rate"]
    assert (critic.status_code, empty.status_code) == (200, 422)
    asked = [one for one in others.asked if isinstance(one, SearchTools)]
    assert [(one.patterns, one.off, one.max_results) for one in asked] == [
        (("*",), (), 10),
        (("bank__*",), ("bank__pay",), 2),
    ]


async def test_traces_steps_costs_and_pages_of_jobs_come_from_tracing(gateway: Running, others: Others):
    job = JobView(job_id="j1", status=Status.COMPLETED, agent="assistant")
    for kind in (t.GetTrace, t.GetSteps, t.GetCosts):
        await others.answer(kind)
    await others.answer(t.ListJobs, t.JobPage(jobs=(job,), next_cursor="next"))

    by_job = await gateway.client.get("/v1/jobs/j1/trace?spans_max=601")
    by_id = await gateway.client.get(f"/v1/traces/{'a' * 32}")
    steps = await gateway.client.get("/v1/jobs/j1/steps")
    await gateway.client.get("/v1/costs?group_by=model,day,model&since=2026-05-01")
    page = (await gateway.client.get("/v1/jobs?limit=1&status=completed")).json()

    assert by_job.json() == by_id.json() == ANSWERS[t.GetTrace].model_dump(mode="json")
    assert [step["status"] for step in steps.json()["steps"]] == ["success"]
    assert (page["jobs"][0]["links"]["self"], page["next_cursor"]) == ("/v1/jobs/j1", "next")
    assert others.asked == [
        t.GetTrace(tenant="default", job_id="j1", spans_max=601),
        t.GetTrace(tenant="default", trace_id="a" * 32),
        t.GetSteps(tenant="default", job_id="j1"),
        t.GetCosts(tenant="default", group_by=("model", "day"), since=datetime(2026, 5, 1, tzinfo=UTC)),
        t.ListJobs(tenant="default", limit=1, status=Status.COMPLETED),
    ]


async def test_jobs_are_listed_by_their_ids(gateway: Running, others: Others):
    await others.answer(t.ListJobs)
    ids = ["j1", "order_7"]
    listed = await gateway.client.get("/v1/jobs", params={"id": ids, "limit": 2})
    wrong = [await gateway.client.get("/v1/jobs", params={"id": id}) for id in (["*"], ["j"] * 201)]

    assert (listed.status_code, [one.status_code for one in wrong]) == (200, [422, 422])
    assert others.asked == [t.ListJobs(tenant="default", limit=2, job_ids=("j1", "order_7"))]


async def test_answers_that_rest_on_a_document_are_listed_with_its_passages(gateway: Running, others: Others):
    def citing(job_id: str, *passages: tuple[str, str]) -> JobView:
        cited = tuple(Citation(document="Tides", quote="q", document_id=of, chunk_id=chunk) for of, chunk in passages)
        return JobView(job_id=job_id, status=Status.COMPLETED, agent="assistant", citations=cited)

    jobs = (citing("j1", ("tides", "c1"), ("tides", "c2"), ("law", "c1")), citing("j2", ("law", "c1")))
    await others.answer(GetDocument)
    await others.answer(t.ListJobs, t.JobPage(jobs=jobs, next_cursor="next"))

    of_document = (await gateway.client.get("/v1/documents/tides/citations?limit=2")).json()
    of_passage = (await gateway.client.get("/v1/documents/tides/citations?chunk_id=c2&cursor=next")).json()
    refused = await gateway.client.delete("/v1/documents/tides/citations")

    [one] = of_document["citations"]
    assert (one["job_id"], one["links"]["self"], of_document["next_cursor"]) == ("j1", "/v1/jobs/j1", "next")
    assert [passage["chunk_id"] for passage in one["passages"]] == ["c1", "c2"]
    assert [passage["chunk_id"] for passage in of_passage["citations"][0]["passages"]] == ["c2"]
    assert [asked for asked in others.asked if isinstance(asked, t.ListJobs)] == [
        t.ListJobs(tenant="default", limit=2, cites="tides"),
        t.ListJobs(tenant="default", cursor="next", cites="tides", cites_chunk="c2"),
    ]
    assert (refused.status_code, refused.headers["allow"]) == (405, "GET")


async def test_a_jaeger_search_reads_only_so_many_spans(gateway: Running, others: Others):
    found = [
        FoundSpan(trace_id=f"{n:032x}", span_id="1" * 16, name="n", service="s", start=datetime.now(UTC), status="ok")
        for n in range(100)
    ]
    await others.answer(SearchSpans, SpanPage(spans=tuple(found)))
    known = ANSWERS[t.GetTrace]
    assert isinstance(known, t.Trace)
    large = known.model_copy(update={"totals": known.totals.model_copy(update={"spans": 1_000})})
    await others.answer(t.GetTrace, large)

    answer = (await gateway.client.get("/jaeger/api/traces?service=s&limit=500")).json()

    read = [one for one in others.asked if isinstance(one, t.GetTrace)]
    assert {one.spans_max for one in read} == {1_000}
    assert len(read) == len(answer["data"]) == 24
    assert answer["data"][0]["warnings"] == ["these are 1000 of its spans: ask for the trace by its id"]


async def test_a_tenants_searches_for_spans_follow_each_other(gateway: Running, others: Others):
    running, most, release = 0, 0, asyncio.Event()

    async def slow(_: SearchSpans) -> SpanPage:
        nonlocal running, most
        running, most = running + 1, max(most, running + 1)
        await release.wait()
        running -= 1
        return SpanPage(spans=())

    await others.answer(SearchSpans, slow)
    paths = ["/v1/traces", "/jaeger/api/traces?service=s"] * 10
    asking = [asyncio.create_task(gateway.client.get(path)) for path in paths]
    await until(lambda: sum(task.done() for task in asking) == 3, why="three find no place")
    release.set()
    answers = [await task for task in asking]

    assert sorted(answer.status_code for answer in answers) == [200] * 17 + [429] * 3
    assert most == 1


async def test_an_overview_joins_jobs_budgets_and_dead_letters(gateway: Running, others: Others, bus: Bus):
    at = datetime(2026, 5, 1, tzinfo=UTC)
    kinds = [(Status.PARKED, "approval", 2), (Status.PARKED, "budget", 5), (Status.RUNNING, None, 1)]
    open_jobs = tuple(
        OpenJobs(status=status, lane="interactive", waiting_for=why, jobs=jobs, oldest_at=at)
        for status, why, jobs in kinds
    )
    await others.answer(GetJobsOverview, JobsOverview(open=open_jobs, spent=()))
    alert = BudgetAlert(threshold=Decimal("0.5"), at=at, used_usd=Decimal(3), limit_usd=Decimal(5))
    near = BUDGET.model_copy(update={"raised": (alert,)})
    await others.answer(ListBudgets, BudgetList(budgets=(near, BUDGET), job_budget_usd=Decimal("0.10")))
    await bus.js.publish("dead.SUBMIT.router.default", b"{}")
    await bus.js.publish("dead.SUBMIT.router.globex", b"{}")

    overview = (await gateway.client.get("/v1/overview")).json()

    assert (overview["decisions"], datetime.fromisoformat(overview["decisions_oldest_at"])) == (2, at)
    assert [kind["jobs"] for kind in overview["open"]] == [2, 5, 1]
    assert (len(overview["budgets"]), overview["dead_letters"]) == (1, 1)


async def test_budgets_are_saved_shown_and_taken_away(gateway: Running, others: Others):
    for kind in (PutBudget, DeleteBudget):
        await others.answer(kind)
    known = BudgetList(budgets=(BUDGET,), job_budget_usd=Decimal("0.10"))
    none = known.model_copy(update={"budgets": ()})
    await others.answer(ListBudgets, lambda asked: known if asked.name in (None, "month") else none)
    wanted = {"limit_usd": "5", "window": "day", "timezone": "Europe/Berlin", "alerts": ["0.5"]}
    shown = BUDGET.model_dump(mode="json")

    saved = await gateway.client.put("/v1/budgets/month", json=wanted)

    assert (saved.status_code, saved.json()) == (200, shown)
    saving = PutBudget(tenant="default", name="month", config=BudgetConfig.model_validate(wanted))
    assert others.asked == [ListBudgets(tenant="default", name="month"), saving]
    assert (await gateway.client.get("/v1/budgets/month")).json() == shown
    assert (await gateway.client.get("/v1/budgets")).json() == {
        "budgets": [shown],
        "job_budget_usd": "0.10",
        "next_cursor": None,
    }
    assert (await gateway.client.delete("/v1/budgets/month")).json() == {"deleted": True}
    missing = await gateway.client.get("/v1/budgets/year")
    assert (missing.status_code, missing.json()["detail"]) == (404, "no budget 'year'")


async def test_an_invalid_budget_is_refused_naming_the_field(gateway: Running):
    for name, wrong, field in (
        ("job", {"limit_usd": 1}, "name"),
        ("month", {"limit_usd": -1}, "limit_usd"),
        ("month", {"limit_usd": "1e999999"}, "limit_usd"),
        ("month", {"limit_usd": 1, "window": "year"}, "window"),
        ("month", {"limit_usd": 1, "window": "job", "hard": False}, "hard"),
        ("month", {"limit_usd": 1, "alerts": [80]}, "alerts"),
        ("month", {"limit_usd": 1, "timezone": "a b"}, "timezone"),
        ("month", {"limit": 1}, "limit"),
    ):
        answer = await gateway.client.put(f"/v1/budgets/{name}", json=wrong)
        assert answer.status_code == 422, wrong
        assert answer.headers["content-type"] == "application/problem+json"
        assert field in answer.text, wrong


async def test_costs_are_asked_for_by_every_group_and_zone(gateway: Running, others: Others):
    await others.answer(t.GetCosts)

    await gateway.client.get("/v1/costs?group_by=kind,session,job,tenant&tz=Europe/Berlin")
    refused = await gateway.client.get("/v1/costs?group_by=colour")

    assert others.asked == [
        t.GetCosts(tenant="default", group_by=("kind", "session", "job", "tenant"), tz="Europe/Berlin")
    ]
    assert refused.status_code == 422
    assert refused.json()["detail"] == (
        "query.group_by: 'colour' is none of model, agent, day, tool, user, tenant, session, job, kind, hour, "
        "provider, purpose, tier, schedule, cache_break, key, version, label, tag; several are joined by commas"
    )


@pytest.mark.parametrize("condition", ["version=2", "label=candidate", "tag=a:b"])
async def test_costs_are_refused_while_tracing_passes_over_a_condition(
    gateway: Running, others: Others, condition: str
):
    older = partial(t.CostTable, rows=())
    await others.answer(t.GetCosts, lambda asked: older(filtered_by=asked.newer_conditions if asked.tool else ()))

    refused = await gateway.client.get(f"/v1/costs?{condition}")
    answered = await gateway.client.get(f"/v1/costs?{condition}&tool=pay")
    without = await gateway.client.get("/v1/costs")

    assert (refused.status_code, answered.status_code, without.status_code) == (503, 200, 200)


async def test_a_refusal_of_another_service_keeps_its_status_and_code(gateway: Running, others: Others):
    await others.answer(GetAgent)
    await others.answer(PutAgent, Reject("the agent is bundled", code="bundled", status=409))

    answer = await gateway.client.put("/v1/agents/assistant", json={})

    assert (answer.status_code, answer.json()["code"]) == (409, "bundled")
    assert answer.json()["detail"] == "the agent is bundled"


@pytest.mark.asyncio(loop_scope="function")
async def test_dead_letters_are_paged_newest_first_as_text_or_base64(platform: Platform):
    gateway, bus = await start_gateway(platform), platform.bus
    for n in range(1, 121):
        tenant = "default" if n % 40 == 0 else "globex"
        headers = {
            h.TENANT: tenant,
            h.DEAD_CODE: "invalid_message",
            h.DEAD_REASON: f"reason {n}",
            h.DEAD_DELIVERIES: "1",
        }
        await bus.store("dead.SUBMIT.router", b"\xff\x00" if n == 80 else b'{"agent": 7}', headers)

    first = (await gateway.client.get("/v1/dead-letters?limit=2")).json()
    second = (await gateway.client.get(f"/v1/dead-letters?limit=2&cursor={first['next_cursor']}")).json()
    text = (await gateway.client.get("/v1/dead-letters/120")).json()
    binary = (await gateway.client.get("/v1/dead-letters/80")).json()
    foreign = await gateway.client.get("/v1/dead-letters/79")

    assert [letter["reason"] for letter in first["dead_letters"]] == ["reason 120", "reason 80"]
    assert [letter["reason"] for letter in second["dead_letters"]] == ["reason 40"]
    assert second["next_cursor"] is None
    assert (text["text"], text["base64"], text["truncated"]) == ('{"agent": 7}', None, False)
    assert (binary["text"], binary["base64"]) == (None, b64encode(b"\xff\x00").decode())
    assert foreign.status_code == 404


@pytest.mark.asyncio(loop_scope="function")
async def test_pages_of_what_was_dismissed_and_redriven_hold_each_once(platform: Platform):
    gateway = await start_gateway(platform)
    store = await platform.store("gateway")
    # All of one moment, which a page may end in.
    await store.execute(
        "default",
        "INSERT INTO dismissed_letters"
        " (tenant, sequence, code, subject, letter_reason, reason, dismissed_by, dismissed_at)"
        " SELECT 'default', n, 'c', 's', 'r', 'r', 'b', '2026-11-01' FROM generate_series(1, 5) AS n",
    )
    await store.execute(
        "default",
        "INSERT INTO redrives (tenant, redrive_id, fingerprint, redriven_by, jobs, begun_at)"
        " SELECT 'default', 'redrive_' || n, 'f', 'b', 1, '2026-11-01' FROM generate_series(1, 5) AS n",
    )
    await store.close()
    for path, name, key in (("dismissed", "dismissed", "sequence"), ("redrives", "redrives", "redrive_id")):
        found, cursor = list[Any](), None
        while cursor is not None or not found:
            params = {"limit": 2, **({"cursor": cursor} if cursor else {})}
            page = (await gateway.client.get(f"/v1/dead-letters/{path}", params=params)).json()
            found += [one[key] for one in page[name]]
            cursor = page["next_cursor"]
        wrong = await gateway.client.get(f"/v1/dead-letters/{path}", params={"cursor": "eA"})

        assert len(found) == len(set(found)) == 5 and found == sorted(found, reverse=True)
        assert (wrong.status_code, wrong.json()["code"]) == (400, "invalid_cursor")


@pytest.mark.asyncio(loop_scope="function")
async def test_a_dismissed_dead_letter_leaves_the_list_with_its_reason(platform: Platform):
    gateway, bus = await start_gateway(platform), platform.bus
    for tenant in ("default", "acme"):
        headers = {h.TENANT: tenant, h.DEAD_CODE: "unknown_agent", h.DEAD_REASON: "no agent 'nobody'"}
        await bus.store("dead.SUBMIT.router", b"{}", {**headers, h.DEAD_SUBJECT: f"jobs.submit.{tenant}"})
    body = {"reason": "a typo; submitted again as order-2"}

    dismissed = await gateway.client.post("/v1/dead-letters/1/dismiss", json=body)
    again = await gateway.client.post("/v1/dead-letters/1/dismiss", json=body)
    foreign = await gateway.client.post("/v1/dead-letters/2/dismiss", json=body)
    silent = await gateway.client.post("/v1/dead-letters/2/dismiss", json={"reason": ""})
    left = (await gateway.client.get("/v1/dead-letters")).json()["dead_letters"]
    kept = (await gateway.client.get("/v1/dead-letters/dismissed")).json()["dismissed"]

    assert [x.status_code for x in (dismissed, again, foreign, silent)] == [200, 404, 404, 422]
    assert left == []
    [letter] = kept
    assert (letter["sequence"], letter["code"], letter["reason"]) == (1, "unknown_agent", body["reason"])
    assert (letter["letter_reason"], letter["dismissed_by"]) == ("no agent 'nobody'", "local")
    assert (await bus.js.stream_info("DEAD")).state.messages == 1


async def test_the_same_file_sent_twice_without_an_id_is_one_document(gateway: Running, bus: Bus):
    async def sent(name: str, content: bytes) -> str:
        answer = await gateway.client.post("/v1/documents", files={"file": (name, content)})
        return answer.json()["document_id"]

    ids = [await sent(*file) for file in (("a.txt", b"one"), ("a.txt", b"one"), ("a.txt", b"two"), ("b.txt", b"one"))]
    as_text = (await gateway.client.post("/v1/documents", json={"name": "a.txt", "text": "one"})).json()["document_id"]

    assert ids[0] == ids[1] == as_text
    assert len(set(ids)) == 3
    assert {document.document_id for document in await indexed(bus)} == set(ids)


async def test_given_text_is_text_whatever_its_name_looks_like(gateway: Running, bus: Bus):
    for name in ("Booking.com", "main.rs", "schema.sql", "film.ts", "paper.pdf"):
        await gateway.client.post("/v1/documents", json={"name": name, "text": f"this is {name}"})

    assert {document.media_type for document in await indexed(bus)} == {"text/plain"}


async def test_documents_are_listed_by_name_and_status(gateway: Running, others: Others):
    await others.answer(ListDocuments, DocumentPage(documents=(), next_cursor="more"))

    described = {"collection": "handbooks", "language": "de"}
    answer = await gateway.client.get("/v1/documents", params={"name": "notes/*", "status": "failed", **described})
    refused = await gateway.client.get("/v1/documents", params={"status": "lost"})

    assert (answer.json()["next_cursor"], refused.status_code) == ("more", 422)
    (asked,) = (asked for asked in others.asked if isinstance(asked, ListDocuments))
    assert (asked.name, asked.status) == ("notes/*", "failed")
    assert (asked.collection, asked.language) == ("handbooks", "de")


DOCUMENT_IDS = (
    "notes/a?.md",
    "a%2Fb",
    "a/../b",
    "/",
    "räksmörgås 🌊/%",
    "ö" * 200,
    *(f"{before}{word}" for word in ("chunks", "citations", "reindex") for before in ("", "a/", "a/b/", "/", "a%2F")),
)


@pytest.mark.parametrize("document_id", DOCUMENT_IDS)
async def test_every_document_id_can_be_read_changed_and_deleted(gateway: Running, others: Others, document_id: str):
    shown = Document(document_id=document_id, name="a")
    for kind in (GetDocument, ChangeDocument):
        await others.answer(kind, shown)
    await others.answer(ListChunks, ChunkPage(chunks=()))
    await others.answer(DeleteDocument, DocumentDeleted(document_id=document_id, chunks_deleted=1))
    at = f"/v1/documents/{quote(document_id, safe='')}"

    answers = [
        await gateway.client.get(at),
        await gateway.client.patch(at, json={"name": "b"}),
        await gateway.client.get(f"{at}/chunks"),
        await gateway.client.delete(at),
    ]

    assert [answer.status_code for answer in answers] == [200] * 4
    assert {asked.model_dump()["document_id"] for asked in others.asked} == {document_id}
    kinds = (ListChunks, DeleteDocument, ChangeDocument)
    assert [type(asked) for asked in others.asked if isinstance(asked, kinds)] == [
        ChangeDocument,
        ListChunks,
        DeleteDocument,
    ]


async def test_a_document_id_that_is_too_long_is_refused(gateway: Running, others: Others):
    answer = await gateway.client.get(f"/v1/documents/{'x' * 300}")

    assert (answer.status_code, others.asked) == (422, [])
