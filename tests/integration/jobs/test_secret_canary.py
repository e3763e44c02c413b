"""A secret of a server is in no table, stream, object, log or span of any service after jobs that used it."""

from __future__ import annotations

import io
import json
import logging
from base64 import b64encode
from contextlib import redirect_stderr
from pathlib import Path

import httpx2
import mcp_types as types
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from wayline.contracts.agents import Agent as SavedAgent
from wayline.contracts.agents import AgentConfig, PutAgent
from wayline.gateway.settings import Settings as GatewaySettings
from wayline.simulator.chat_server import ChatServer, Say, turns
from wayline.testkit import Platform, until
from wayline.testkit.mcp_servers import serving
from wayline.tracing.settings import Settings as TracingSettings

from .conftest import chatting, until_listed, with_tools

CANARY = "canary-77b0c3"
MARKER = "a-word-of-the-tool-5e1d"
"""What may be kept: a scan that does not find it has looked nowhere."""
KEYS = f"k:{b64encode(bytes(32)).decode()}"
LONG = 400_000
"""Bytes of a result that is moved to the object store."""
SCHEMAS = {"gateway", "router", "tools", "tracing"}


def bank_of(key: str) -> MCPServer:
    """Return a server that repeats its key in all that it says."""
    bank = MCPServer("bank", instructions=f"You sent {key}.")

    @bank.tool(description=f"Pay with {key}.")
    def pay(amount: int) -> str:
        raise ToolError(f"{key} was refused, {MARKER}")

    @bank.tool(description="Look.")
    def look() -> types.CallToolResult:
        text = f"{MARKER} {key} " + f"{MARKER} " * (LONG // len(MARKER))
        about = {"key": key, "entities": [{"type": "account", "id": key, "name": f"{key} of acme"}]}
        cited = {"wayline/citations": [{"document": key, "quote": f"{key} is here"}]}
        content = [types.TextContent(type="text", text=text), types.TextContent(type="text", text=json.dumps(about))]
        return types.CallToolResult(content=[*content], structured_content=about, _meta=cited)

    return bank


async def tables(platform: Platform) -> dict[str, str]:
    """Return every row of every table as text, by schema."""
    found: dict[str, str] = {}
    async with platform.superuser() as conn:
        listed = (
            "SELECT schemaname, tablename FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
        )
        for schema, table in await conn.fetch(listed):
            rows = await conn.fetch(f'SELECT * FROM "{schema}"."{table}"')
            found[schema] = found.get(schema, "") + "".join(repr(dict(row)) for row in rows)
    return found


def stored(directory: Path) -> bytes:
    """Return what the bus has on its disk: all streams, key-value buckets and objects, also what was acked."""
    return b"".join(file.read_bytes() for file in sorted(directory.rglob("*")) if file.is_file())


async def test_a_secret_is_in_no_table_stream_object_log_or_span(platform, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    spans, written = InMemorySpanExporter(), io.StringIO()
    plan = turns(
        Say(tools=(("bank__pay", {"amount": 1}), ("bank__look", {}))),
        Say(tools=(("bank__pay", {"amount": 2}),)),
        Say(text="done"),
    )
    key = f"{CANARY}-header"
    with redirect_stderr(written):
        async with ChatServer(plan) as chat, serving(bank_of(key)) as url:
            await platform.start(
                *("router", "executor", "tool_registry", "tracing", "gateway"),
                executor=chatting(chat),
                tool_registry=with_tools(server_allowed_hosts=["127.0.0.1:*"], keys=KEYS),
                tracing=TracingSettings(linger_ms=5),
                gateway=GatewaySettings(http_port=0),
            )
            for service in platform.running:
                service.telemetry.add_processor(SimpleSpanProcessor(spans))
            config = {"url": f"{url}?key={CANARY}-query", "headers": {"Authorization": f"Bearer {key}"}}
            config |= {"untrusted": False, "trusted": True}
            async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{platform.http_port}", timeout=30) as http:
                answers = [
                    await http.put("/v1/mcp/servers/bank", json=config),
                    await http.post("/v1/mcp/servers/test", json=config),
                    await http.put("/v1/mcp/servers/bad", json={**config, "command": "sh"}),
                ]
                await until_listed(platform, "bank__pay")
                asking = PutAgent(tenant="default", name="payer", config=AgentConfig(tools=("bank__*",), ask="never"))
                await platform.bus.ask(asking, SavedAgent)
                await platform.submit("j1", agent="payer", model="chat/m")
                await platform.wait_for("j1")

                async def traced() -> bool:
                    trace = await http.get("/v1/jobs/j1/trace")
                    answers[3:] = [trace]
                    return trace.status_code == 200 and "bank__pay" in trace.text

                await until(traced, why="tracing has the job")
                answers.append(await http.get("/v1/mcp/servers"))
                answers.append(await http.get("/v1/mcp/servers/bank/impact"))

    kept = await tables(platform)
    disk = stored(platform.nats.server.data_dir / "jetstream")
    prompts = "".join(str(body) for _, body in chat.calls)
    logs = "".join(line.getMessage() for line in caplog.records if not line.name.startswith("mcp.server"))
    told = {
        **{f"schema {name}": text for name, text in kept.items()},
        "bus": disk.decode(errors="replace"),
        "prompts": prompts,
        "answers": "".join(answer.text for answer in answers),
        "logs": logs + written.getvalue() + "".join(capfd.readouterr()),
        "spans": "".join(span.to_json() for span in spans.get_finished_spans()),
    }
    assert {where for where, text in told.items() if CANARY in text} == set()
    assert kept.keys() >= SCHEMAS
    assert MARKER in prompts and "bank__pay" in told["spans"] and "bank" in kept["tools"]
    assert disk.count(MARKER.encode()) > LONG // len(MARKER) // 2, "the object store was not looked at"
