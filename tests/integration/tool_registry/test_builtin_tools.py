"""The tools that every registry has."""

from __future__ import annotations

import json

from nats.aio.msg import Msg

from wayline.contracts.chat import Citation
from wayline.contracts.knowledge import Degraded, Hit, SearchKnowledge, SearchResult
from wayline.contracts.tools import Effect, ListTools, ToolList


async def hear_searches(platform, on_search) -> None:
    """Stand in for retrieval on the bus."""
    bus = await platform.connect("retrieval")
    await bus.nc.subscribe("retrieval.search.*", cb=on_search)
    await bus.settled()


async def answer_searches(platform, result: SearchResult, asked: list[SearchKnowledge]) -> None:

    async def on_search(message: Msg) -> None:
        asked.append(SearchKnowledge.from_wire(message.data, message.subject))
        await message.respond(result.model_dump_json().encode())

    await hear_searches(platform, on_search)


async def test_a_listing_names_the_built_in_tools_and_their_effect(platform):
    await platform.registry()

    listed = await platform.bus.ask(ListTools(tenant=platform.tenant, patterns=("*",)), ToolList)

    own = [tool for tool in listed.tools if tool.server == "builtin"]
    assert [(tool.name, tool.effect, tool.untrusted) for tool in own] == [
        ("calculator", Effect.READ, False),
        ("cluster_by_similarity", Effect.READ, False),
        ("date_calculate", Effect.READ, False),
        ("detect_dependencies", Effect.READ, False),
        ("get_current_time", Effect.READ, False),
        ("get_document_context", Effect.READ, False),
        ("memory_retrieve", Effect.READ, False),
        ("memory_save", Effect.IDEMPOTENT, False),
        ("query_task_graph", Effect.READ, False),
        ("retrieve_context", Effect.READ, False),
        ("search_knowledge", Effect.READ, False),
        ("semantic_search", Effect.READ, False),
        ("store_insight", Effect.IDEMPOTENT, False),
        ("web_fetch", Effect.READ, True),
    ]
    assert set(own[10].input_schema["properties"]) == {
        *("query", "top_k", "document_ids", "mode", "filter", "collections", "rerank")
    }


async def test_a_search_asks_retrieval_for_the_callers_tenant_and_brings_citations(platform):
    await platform.registry()
    asked: list[SearchKnowledge] = []
    hit = Hit(chunk_id="c1", document_id="d1", document="Guide", text="Tea is brewed at 80 degrees.", score=1)
    await answer_searches(platform, SearchResult(hits=(hit,), mode="hybrid"), asked)

    reply = await platform.once(platform.ask("search_knowledge", {"query": "tea", "top_k": 3, "document_ids": ["d1"]}))

    assert (asked[0].tenant, asked[0].query, asked[0].top_k, asked[0].filter.document_ids) == (
        platform.tenant,
        "tea",
        3,
        ("d1",),
    )
    assert reply.status == "success"
    assert reply.content == "[1] Guide\nTea is brewed at 80 degrees."
    assert reply.citations == (Citation(document="Guide", quote=hit.text, document_id="d1", chunk_id="c1"),)
    assert (reply.size_bytes, reply.tokens) == (len(reply.content), 11)


async def test_a_search_that_left_meaning_out_tells_the_model(platform):
    await platform.registry()
    hit = Hit(chunk_id="c1", document_id="d1", document="Guide", text="Tea is brewed at 80 degrees.", score=1)
    missing = Degraded(leg="vectors", reason="provider", detail="https://internal.example answered 429")
    await answer_searches(platform, SearchResult(hits=(hit,), mode="hybrid", degraded=(missing,)), [])

    reply = await platform.once(platform.ask("search_knowledge", {"query": "tea"}))

    assert reply.status == "success"
    assert "80 degrees.\n\n(This search compared words alone" in reply.content
    assert "internal.example" not in reply.content


async def test_a_search_without_retrieval_is_unavailable_after_three_tries(platform):
    await platform.registry()

    reply = await platform.once(platform.ask("search_knowledge", {"query": "tea"}))

    assert reply.error is not None
    assert (reply.error.code, reply.attempts) == ("unavailable", 3)
    assert "knowledge base" in reply.error.message


async def test_the_time_is_given_in_a_zone_a_wrong_one_refused(platform):
    await platform.registry()

    reply = await platform.once(platform.ask("get_current_time", {"timezone": "Europe/Zurich"}))
    wrong = await platform.once(platform.ask("get_current_time", {"timezone": "Mars"}, job="j2"))

    assert reply.status == "success"
    assert wrong.error is not None
    assert "no IANA time zone" in wrong.error.message


async def test_an_expression_is_calculated_a_wrong_one_explained(platform):
    await platform.registry()

    right = await platform.once(platform.ask("calculator", {"expression": "15% of 80"}))
    wrong = await platform.once(platform.ask("calculator", {"expression": "1/0"}, job="j2"))

    assert right.content == "12"
    assert wrong.error is not None
    assert wrong.error.code == "tool_failed" and wrong.error.message.endswith("this divides by zero")


async def test_dates_are_calculated_what_is_missing_is_named(platform):
    await platform.registry()
    amount = {"operation": "add", "date": "2026-04-01", "business_days": 3, "country": "CH", "region": "ZH"}

    right = await platform.call(platform.ask("date_calculate", amount))
    wrong = await platform.call(platform.ask("date_calculate", {"operation": "period"}, job="j2"))
    unknown = await platform.call(platform.ask("date_calculate", {"operation": "guess"}, job="j3"))

    assert json.loads(right.content) == {"result": "2026-04-08", "weekday": "Wednesday"}
    assert wrong.error is not None and "needs a unit" in wrong.error.message
    assert unknown.error is not None and unknown.error.code == "invalid_arguments"


async def test_reads_leave_no_row_in_the_ledger(platform):
    await platform.registry()
    ask = platform.ask("get_current_time")

    await platform.once(ask)

    assert await platform.row(ask.key) is None


async def test_a_searchs_span_is_under_its_call_without_content(platform):
    registry = await platform.registry()
    traceparents: list[str] = []

    async def on_search(message: Msg) -> None:
        traceparents.append((message.headers or {})["traceparent"])
        await message.respond(SearchResult(hits=(), mode="hybrid").model_dump_json().encode())

    await hear_searches(platform, on_search)

    await platform.once(platform.ask("search_knowledge", {"query": "a secret question"}))

    spans = {span.name: span for span in registry.spans.get_finished_spans()}
    call, consumer = spans["tools/call search_knowledge"], spans["process tools.call.{tenant}"]
    assert call.parent is not None
    assert call.parent.span_id == consumer.context.span_id
    assert traceparents[0].split("-")[2] == format(call.context.span_id, "016x")
    assert call.attributes["mcp.method.name"] == "tools/call"
    assert call.attributes["wayline.tool.effect"] == "read"
    assert "secret" not in "".join(repr(vars(span)) for span in spans.values())
