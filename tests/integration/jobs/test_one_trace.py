"""One trace a job, across every service it passed through, with the right parents."""

from collections.abc import AsyncIterator, Iterator

import httpx2
import pytest
import pytest_asyncio

from wayline.contracts import ids
from wayline.contracts.errors import WaylineError
from wayline.contracts.traces import GetTrace, Span, Trace
from wayline.gateway.settings import Settings as GatewaySettings
from wayline.testkit import Platform, until

from .conftest import index_document
from .ended_jobs import differences

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

EVERY_SERVICE = ("tracing", "retrieval", "tool_registry", "router", "executor", "gateway")
LEASES = "A lease is renewed every two seconds while its tool runs. An expired lease means that nobody knows."


def flat(span: Span) -> Iterator[Span]:
    yield span
    for child in span.children:
        yield from flat(child)


def parents(root: Span) -> dict[str, str | None]:
    """Each span's name with its parent's."""
    found: dict[str, str | None] = {root.name: None}
    for span in flat(root):
        found |= {child.name: span.name for child in span.children}
    return found


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def whole(module_platform: Platform) -> AsyncIterator[Platform]:
    """Every service, and a document about leases; each test asks by jobs of its own."""
    await module_platform.start(*EVERY_SERVICE, gateway=GatewaySettings(http_port=0))
    await index_document(module_platform, "d1", "leases.md", LEASES)
    yield module_platform
    assert await differences(module_platform.bus) == []


HANDLED = ("process jobs.submit.{tenant}", "process tools.call.{tenant}", "process retrieval.search.{tenant}")
"""Spans leave a service when they have ended, parents after their children: these are the last of each."""


async def trace_of(platform, job_id: str, *names: str) -> Trace:
    """A job's trace, once it is whole: these spans have arrived and none is open."""
    found: list[Trace] = []

    async def complete() -> bool:
        try:
            found[:] = [await platform.bus.ask(GetTrace(tenant="default", job_id=job_id), Trace)]
        except WaylineError:
            return False
        spans = list(flat(found[0].root))
        return {span.name for span in spans} >= {*HANDLED, *names} and all(span.status != "open" for span in spans)

    await until(complete, why=f"the trace of {job_id} is whole")
    return found[0]


async def test_a_job_from_http_has_one_tree_through_all_services(whole):
    url = f"http://127.0.0.1:{whole.http_port}"
    caller = f"00-{'ab' * 16}-{'cd' * 8}-01"
    async with httpx2.AsyncClient(base_url=url, timeout=30) as client:
        job = {"agent": "assistant", "input": "How often is a lease renewed?"}
        answer = (await client.post("/v1/jobs?wait=20", json=job, headers={"traceparent": caller})).json()

    assert answer["citations"][0]["document"] == "leases.md"
    tree = await trace_of(whole, answer["job_id"], "publish jobs.submit.{tenant}")
    above = parents(tree.root)
    assert tree.trace_id == ids.trace_id("default", answer["job_id"]) == answer["trace_id"]
    assert above["invoke_agent assistant"] is None
    assert above["publish jobs.submit.{tenant}"] == "invoke_agent assistant"
    assert above["process jobs.submit.{tenant}"] == "publish jobs.submit.{tenant}"
    assert above["chat extractive"] == "step 2"
    assert above["execute_tool search_knowledge"] == "step 1"
    assert above["process tools.call.{tenant}"] == "execute_tool search_knowledge"
    assert above["process retrieval.search.{tenant}"] == "tools/call search_knowledge"
    links = [link["trace_id"] for span in flat(tree.root) for link in span.links]
    assert "ab" * 16 in links
    assert not [span for span in flat(tree.root) if span.trace_id != tree.trace_id]
    services = {span.service for span in flat(tree.root)}
    assert services == {"gateway", "router", "executor", "tool-registry", "retrieval"}
    assert tree.totals.tokens == answer["usage"]["input"] + answer["usage"]["output"]
    assert str(tree.totals.cost_usd) == answer["cost_usd"] == "0"


async def test_a_job_from_the_bus_has_the_tree_without_gateway(whole):
    await whole.submit("q1", "How often is a lease renewed?")
    await whole.wait_for("q1")

    tree = await trace_of(whole, "q1")

    above = parents(tree.root)
    assert above["process jobs.submit.{tenant}"] == "invoke_agent assistant"
    assert above["process retrieval.search.{tenant}"] == "tools/call search_knowledge"
    assert {span.service for span in flat(tree.root)} == {"router", "executor", "tool-registry", "retrieval"}


async def test_no_span_carries_what_was_asked_or_answered(whole):
    canary = "xylophone-4711"
    await whole.submit("q2", f"How often is a lease renewed, {canary}?")
    await whole.wait_for("q2")
    await trace_of(whole, "q2")

    async with whole.superuser() as conn:
        spans = await conn.fetch("SELECT row_to_json(s)::text AS text FROM tracing.spans s")
    assert len(spans) > 8
    assert not [row["text"] for row in spans if canary in row["text"] or "nobody knows" in row["text"]]
