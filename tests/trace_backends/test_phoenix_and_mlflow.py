"""Phoenix and MLflow from PyPI show the tree of a job, its tokens, its session and (MLflow) its dollars."""

from __future__ import annotations

import asyncio
import os
import signal
from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import orjson
import pytest
import pytest_asyncio
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import SpanExportResult

from wayline.contracts import events as e
from wayline.contracts import ids
from wayline.contracts.money import Usage
from wayline.embedded.ports import free_port
from wayline.testkit import until
from wayline.tracing.adapters.dialects import SAID
from wayline.tracing.adapters.readable_spans import from_rows
from wayline.tracing.projection.job_projection import JobProjection
from wayline.tracing.rows import SpanRow

from ..integration.tracing.test_costs import Spender
from ..npm import installed

READY_WITHIN_S = 300
"""Each makes the tables of its own database when it starts first."""
WHOLE = Usage(input=100, cache_read=60, cache_write_5m=30, output=20, reasoning=5)
DOLLARS = (Decimal("0.001234567"), Decimal("0.000000003"))
TOOL_DOLLARS = Decimal("0.01")
IN_ALL = sum(DOLLARS, TOOL_DOLLARS)

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow, pytest.mark.timeout(READY_WITHIN_S + 60)]


class Sent(NamedTuple):
    """A job's spans, as tracing forwards them with every dialect."""

    trace_id: str
    rows: list[SpanRow]

    @property
    def edges(self) -> set[tuple[str, str | None]]:
        return {(row.span_id, row.parent_span_id) for row in self.rows}

    def to(self, url: str, **headers: str) -> None:
        exporter = OTLPSpanExporter(f"{url}/v1/traces", headers=headers, timeout=60)
        spans = from_rows(self.rows, dialects=tuple(SAID))
        assert exporter.export(spans) is SpanExportResult.SUCCESS


def job() -> Sent:
    """Return a job of two model calls and a tool call, each of which costs."""
    log = Spender(None)  # type: ignore[arg-type]
    log.submitted()
    log.routed()
    log.claimed()
    for step, cost in enumerate(DOLLARS, 1):
        log.asks(step)
        heard = log.hears(step, cost=str(cost))
        log.told[-1] = heard.model_copy(update={"usage": WHOLE})
        if step == 1:
            log.asked_tool(step)
            log.tool_answered(step, cost=str(TOOL_DOLLARS))
    log.completed()
    assert isinstance(log.told[-1], e.JobCompleted)
    projection = JobProjection("acme", "j1")
    for event in log.told:
        projection.apply(event)
    return Sent(ids.trace_id("acme", "j1"), list(projection.take_changes().closed))


@asynccontextmanager
async def running(folder: Path, health: str, *command: str, **env: str) -> AsyncIterator[httpx2.AsyncClient]:
    """Run a server of the virtual environment that `make trace-backends` made, until it is no longer asked."""
    port = free_port()
    program = installed("trace_backends", "bin", command[0])
    arguments = [one.format(port=port, folder=folder) for one in command[1:]]
    named = {name: value.format(port=port, grpc=free_port(), folder=folder) for name, value in env.items()}
    with (folder / "log.txt").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(program, *arguments),
            env={**os.environ, "HOME": str(folder), **named},
            stdout=log,
            stderr=log,
            cwd=folder,
            start_new_session=True,
        )
        try:
            async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:

                async def well() -> bool:
                    assert process.returncode is None, (folder / "log.txt").read_text()[-2_000:]
                    try:
                        return (await client.get(health)).is_success
                    except httpx2.TransportError:
                        return False

                await until(well, within=READY_WITHIN_S, why=f"{command[0]} answers")
                yield client
        finally:
            # With what it has started: nothing that it keeps is wanted any longer.
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def phoenix(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[httpx2.AsyncClient]:
    folder = tmp_path_factory.mktemp("phoenix")
    settings = {"PHOENIX_HOST": "127.0.0.1", "PHOENIX_PORT": "{port}", "PHOENIX_GRPC_PORT": "{grpc}"}
    quiet = {"PHOENIX_WORKING_DIR": "{folder}", "PHOENIX_TELEMETRY_ENABLED": "false"}
    async with running(folder, "/healthz", "phoenix", "serve", **settings, **quiet) as client:
        yield client


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def mlflow(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[httpx2.AsyncClient]:
    stores = ("--backend-store-uri", "sqlite:///{folder}/mlflow.db", "--default-artifact-root", "{folder}/artifacts")
    where = ("--host", "127.0.0.1", "--port", "{port}", "--workers", "1")
    settings = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    folder = tmp_path_factory.mktemp("mlflow")
    async with running(folder, "/health", "mlflow", "server", *stores, *where, **settings) as client:
        yield client


async def kept_by_phoenix(phoenix: httpx2.AsyncClient, *, spans: int) -> list[dict[str, Any]]:
    kept: list[dict[str, Any]] = []

    async def whole() -> bool:
        answer = await phoenix.get("/v1/projects/default/spans", params={"limit": 100})
        kept[:] = answer.json()["data"] if answer.is_success else []
        return len(kept) == spans

    await until(whole, within=60, why="Phoenix shows every span")
    return kept


async def test_phoenix_shows_tree_tokens_and_session_without_the_cost(phoenix: httpx2.AsyncClient):
    sent = job()
    sent.to(str(phoenix.base_url).rstrip("/"))

    kept = await kept_by_phoenix(phoenix, spans=len(sent.rows))
    sessions = (await phoenix.get("/v1/projects/default/sessions")).json()["data"]
    asked = "{ projects { edges { node { spans(first: 50) { edges { node { costSummary { total { cost } } } } } } } } }"
    [project] = (await phoenix.post("/graphql", json={"query": asked})).json()["data"]["projects"]["edges"]

    assert {(one["context"]["span_id"], one["parent_id"]) for one in kept} == sent.edges
    assert {one["context"]["trace_id"] for one in kept} == {sent.trace_id}
    kinds = sorted(one["span_kind"] for one in kept)
    assert kinds == ["AGENT", "CHAIN", "CHAIN", "LLM", "LLM", "TOOL"]
    for call in (one["attributes"] for one in kept if one["span_kind"] == "LLM"):
        parts = ("prompt", "completion", "total")
        assert [call[f"llm.token_count.{part}"] for part in parts] == [100, 20, 120]
        assert call["llm.token_count.prompt_details.cache_read"] == 60
        assert call["llm.token_count.prompt_details.cache_write"] == 30
        assert call["llm.token_count.completion_details.reasoning"] == 5
    [session] = sessions
    assert session["session_id"] == "s1" and session["token_count_total"] == 240
    # What a call cost arrives, as an attribute, and is not taken for its cost: Phoenix knows prices of its own alone.
    told = [one["attributes"]["llm.cost.total"] for one in kept if one["span_kind"] == "LLM"]
    costs = [edge["node"]["costSummary"] for edge in project["node"]["spans"]["edges"]]
    assert sorted(told) == sorted(map(float, DOLLARS))
    assert [one["total"]["cost"] for one in costs if one is not None] == [None, None]


async def test_mlflow_shows_tree_tokens_session_and_dollars(mlflow: httpx2.AsyncClient):
    sent = job()
    sent.to(str(mlflow.base_url).rstrip("/"), **{"x-mlflow-experiment-id": "0"})

    place = {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": "0"}}
    found = await mlflow.post("/api/3.0/mlflow/traces/search", json={"locations": [place], "max_results": 5})
    [trace] = found.json()["traces"]
    whole = await mlflow.get("/api/3.0/mlflow/traces/get", params={"trace_id": trace["trace_id"]})
    spans = whole.json()["trace"]["spans"]

    assert trace["trace_id"] == f"tr-{sent.trace_id}" and trace["state"] == "OK"
    shown = {(hex_of(one["span_id"]), hex_of(one.get("parent_span_id"))) for one in spans}
    assert shown == sent.edges
    known = {name: value_of(value) for name, value in trace["trace_metadata"].items()}
    assert (known["mlflow.trace.session"], known["mlflow.trace.user"]) == ("s1", "u1")
    used = known["mlflow.trace.tokenUsage"]
    kinds = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    assert [used[kind] for kind in kinds] == [200, 40, 120, 60]
    reasoning = [
        attribute["value"]["int_value"]
        for one in spans
        for attribute in one["attributes"]
        if attribute["key"] == "gen_ai.usage.reasoning.output_tokens"
    ]
    assert list(map(int, reasoning)) == [5, 5]
    assert abs(Decimal(str(known["mlflow.trace.cost"]["total_cost"])) - IN_ALL) < Decimal("1e-9")


def hex_of(encoded: str | None) -> str | None:
    """Return the id of a span, which is told in base 64."""
    return b64decode(encoded).hex() if encoded else None


def value_of(text: str) -> Any:
    """Return what a text holds as JSON, or the text."""
    return orjson.loads(text) if text.startswith("{") else text
