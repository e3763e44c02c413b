"""Record what this version leaves on the bus and in the database, for the versions after it to go on from.

`make release-fixtures` runs it when a version is released, into tests/releases/<version>; see the README there.
"""

from __future__ import annotations

import base64
import fcntl
import io
import json
import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from nats.js.errors import NotFoundError

from wayline.chassis.running_version import checked_out_commit
from wayline.chassis.topology import BUCKETS, STREAMS
from wayline.contracts.errors import Retry
from wayline.contracts.models import ModelCard, Prices, PutModel, Rates
from wayline.contracts.tools import RUN_CODE, ListTools, ToolList
from wayline.executor.settings import Settings as ExecutorSettings
from wayline.gateway.settings import Settings as GatewaySettings
from wayline.notifier.settings import Settings as NotifierSettings
from wayline.router.settings import Settings as RouterSettings
from wayline.simulator.chat_server import ChatServer, Say
from wayline.standalone.services import MEMBERS
from wayline.store.migration_files import read_migrations
from wayline.testkit import Platform, until
from wayline.testkit.effects_server import EffectsServer
from wayline.tool_registry.settings import Settings as RegistrySettings

OUT = os.environ.get("WAYLINE_RECORD_RELEASE", "")
KEYS = "recorded:" + base64.b64encode(b"k" * 32).decode()
"""Of everything that is sealed or signed in a recording; no other key is like it."""
TTL_S = 20 * 365 * 86_400.0
"""How long its approvals may be decided: for as long as the recording is used."""
CARD = ModelCard(
    provider="chat",
    model="m",
    tier="standard",
    tools="native",
    prices=Prices(rates=Rates(input=Decimal("0.30"), output=Decimal("1.20")), source="recorded"),
)
EFFECTS_PORT = 21_837
"""Of the server of tools: an approval is bound to its address, so that every run needs this one."""
OTHER_RUN_WITHIN_S = 240
PASSING = {"PROBES", "ADVISORY", "OBJ_REPLIES"}
"""Streams whose messages mean nothing to a later process."""
PROGRAM = """
paid = []
for n in range(2):
    paid.append(await effects__put_idempotent(value=str(n)) if n < 1 else await effects__pay_once(amount=n))
paid[-1]
"""
SCHEMAS = ("gateway", "notifier", "retrieval", "router", "tools", "tracing")


def text_of(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else content[0].get("text", "")


def script(body: dict[str, Any]) -> Say:
    """Answer each recorded job: the first word of its input says what its model does."""
    messages = body["messages"]
    texts = [text_of(message) if message["role"] == "user" else "" for message in messages]
    # What a model is told beside the user's words begins with a bracket.
    at = max(n for n, text in enumerate(texts) if text and not text.startswith("["))
    task = texts[at]
    if any(message["role"] == "tool" for message in messages[at:]):
        return Say("It is done.")
    if task.startswith("Pay"):
        return Say("I pay.", tools=(("effects__look_read", {"query": "a"}), ("effects__pay_once", {"amount": 7})))
    if task.startswith("Compute"):
        return Say(tools=((RUN_CODE, {"code": PROGRAM}),))
    if task.startswith("Look"):
        return Say(tools=(("effects__look_read", {"query": "a"}),))
    return Say(f"You said: {task.splitlines()[0]}")


async def start(platform: Platform, effects: EffectsServer, chat: ChatServer, *names: str) -> None:
    """Start services with the keys and settings that a recording has."""
    await platform.start(
        *names,
        router=RouterSettings(chat_base_url=chat.url),
        executor=ExecutorSettings(chat_base_url=chat.url, tool_wait_s=2.0, snapshot_keys=KEYS, decision_ttl_s=TTL_S),
        tool_registry=RegistrySettings.model_validate(
            {"servers": [effects.settings()], "keys": KEYS, "lease_s": 0.9, "server_allowed_hosts": ["127.0.0.1:*"]}
        ),
        notifier=NotifierSettings.model_validate({"keys": KEYS, "allowed_hosts": ("127.0.0.1:*",)}),
        gateway=GatewaySettings(http_port=0),
    )


SERVICES = ("router", "tool_registry", "retrieval", "tracing", "notifier", "executor", "gateway")


async def until_listed(platform: Platform, tool: str) -> None:
    """Wait until the registry lists a tool."""

    async def listed() -> bool:
        try:
            found = await platform.bus.ask(ListTools(tenant="default"), ToolList)
        except Retry:
            return False
        return tool in {one.name for one in found.tools}

    await until(listed, why=f"{tool} is listed")


async def configure(platform: Platform, http: Any) -> None:
    """Save one thing of every kind that an operator or a user saves."""
    asking = {"tools": ("effects__*",), "ask_tools": {"effects__pay_once": "always"}, "instructions": "Be brief."}
    await platform.bus.ask(PutModel(tenant="default", card=CARD), ModelCard)
    await platform.put_agent("careful", **asking)
    await platform.put_agent("coder", code=True, **asking)
    await platform.put_agent("plain", tools=("effects__look_read",), instructions="Be brief.")
    saved = [
        await http.put("/v1/budgets/month", json={"limit_usd": "5"}),
        await http.put(
            "/v1/schedules/yearly", json={"cron": "0 0 1 1 *", "job": {"agent": "plain", "input": "Happy new year"}}
        ),
        await http.put("/v1/webhooks/crm", json={"url": "http://127.0.0.1:9/hook", "events": ["job.failed"]}),
        await http.put(
            "/v1/prompts/review", json={"messages": [{"text": "Review {{text}}"}], "arguments": [{"name": "text"}]}
        ),
        await http.put(
            "/v1/mcp/servers/bank",
            json={"url": "http://127.0.0.1:9/mcp", "headers": {"Authorization": "Bearer recorded"}},
        ),
        await http.put("/v1/subjects/person/jo", json={"name": "Jo"}),
        await http.post(
            "/v1/documents?wait=20",
            json={"document_id": "tides", "name": "tides.md", "text": "# Tides\n\nThe moon pulls the sea twice a day."},
        ),
        await http.post(
            "/v1/memories",
            json={
                "user_id": "ann",
                "facts": [{"text": "Lives in Bonn.", "category": "profile", "tier": "core"}],
            },
        ),
        await http.post(
            "/v1/insights",
            json={
                "subject": {"type": "person", "id": "jo"},
                "facts": [{"text": "Jo likes long walks.", "category": "preference", "importance": 8}],
            },
        ),
    ]
    refused = [f"{answer.request.url.path}: {answer.text}" for answer in saved if not answer.is_success]
    assert refused == []


async def run_jobs(platform: Platform, http: Any) -> None:
    """Run jobs to their ends, into a session, and up to where they wait for a person."""
    chat = {"model": "chat/m", "budget_usd": "1"}
    await platform.publish(
        {"agent": "plain", "input": "Look there", "job_id": "ended", "user_id": "ann", "options": chat}
    )
    assert (await platform.wait_for("ended")).status == "completed", await platform.events("ended")
    for number in (1, 2):
        body = {"agent": "plain", "input": f"This is turn {number}", "job_id": f"turn{number}", "session_id": "talk"}
        await platform.publish({**body, "user_id": "ann", "options": chat})
        await platform.wait_for(f"turn{number}")
    await platform.publish({"agent": "careful", "input": "Pay 7", "job_id": "parked", "options": chat})
    await platform.publish({"agent": "coder", "input": "Compute it", "job_id": "program", "options": chat})
    for job_id in ("parked", "program"):
        await platform.wait_until(job_id, lambda job: bool(job.tools.pending), f"{job_id} asks a person")
    await platform.wait_until_empty("RUN")
    feedback = await http.post("/v1/jobs/ended/feedback", json={"score": 1})
    assert feedback.is_success, feedback.text

    async def traced() -> bool:
        listed = (await http.get("/v1/jobs")).json()["jobs"]
        return {one["job_id"]: one["status"] for one in listed} == {
            "ended": "completed", "turn1": "completed", "turn2": "completed", "parked": "parked", "program": "parked",
        }  # fmt: skip

    await until(traced, why="tracing has every job")


@asynccontextmanager
async def only_run() -> AsyncIterator[None]:
    """Have the fixed port for this run alone: another one on this machine, of any checkout, is waited for."""
    with (Path(tempfile.gettempdir()) / f"wayline-{os.getuid()}-{EFFECTS_PORT}.lock").open("a") as file:

        def is_ours() -> bool:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True

        await until(is_ours, within=OTHER_RUN_WITHIN_S, why="another run of these tests has ended")
        yield


@pytest.mark.skipif(not OUT, reason="`make release-fixtures` names the directory")
@pytest.mark.not_replayed("its jobs wait for the next version")
async def test_what_this_version_leaves_is_recorded(platform: Platform, tmp_path: Path):
    effects = EffectsServer(tmp_path / "effects.txt", port=EFFECTS_PORT)
    await effects.start()
    try:
        async with ChatServer(script) as chat:
            await start(platform, effects, chat, *SERVICES)
            await until_listed(platform, "effects__pay_once")
            http = await platform.http()
            await configure(platform, http)
            await run_jobs(platform, http)
            # An unreadable submission becomes a dead letter.
            await platform.publish(b"{", {"Nats-Msg-Id": "unreadable"})
            await until(lambda: counted(platform, "DEAD", 1), why="the unreadable submission is put aside")
            key = (
                await http.post("/v1/keys", json={"name": "recorded", "scopes": ["read", "write", "admin", "operator"]})
            ).json()
            # What nobody has handled yet: a ticket, a submission, a document and a decision.
            await platform.stop("executor", 1)
            await platform.publish(
                {"agent": "plain", "input": "Look there", "job_id": "queued", "options": {"model": "chat/m"}}
            )
            await platform.wait_until("queued", lambda job: job.routing.route is not None, "it has a ticket")
            for name in ("gateway", "notifier", "tracing", "retrieval", "tool_registry", "router"):
                await platform.stop(name, 2)
            await platform.publish(
                {"agent": "plain", "input": "Look there", "job_id": "submitted", "options": {"model": "chat/m"}}
            )
    finally:
        effects.kill()
    about = {"recorded_at": datetime.now(UTC).isoformat(), "api_key": key["key"], "keys": KEYS}
    lines = [line async for line in bus_lines(platform)]
    async with platform.superuser() as conn:
        rows = await table_rows(conn)
    write(Path(OUT), {"about.json": json.dumps(about, indent=1) + "\n", "bus.jsonl": "".join(lines)}, rows)


def write(out: Path, texts: dict[str, str], rows: bytes) -> None:
    out.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (out / name).write_text(text)
    (out / "tables.txt").write_bytes(rows)
    known = [(one.schema, file) for one in MEMBERS if one.schema for file in read_migrations(one.migrations())]
    (out / "migrations.txt").write_text("".join(f"{file.checksum} {schema} {file.file}\n" for schema, file in known))
    (out / "commit.txt").write_text(f"{checked_out_commit()}\n")


async def counted(platform: Platform, stream: str, least: int) -> bool:
    return await platform.count(stream) >= least


async def bus_lines(platform: Platform) -> Any:
    """Yield a line of JSON for each message of each stream, with its sequence."""
    js = platform.bus.js
    for name in (*(stream.name or "" for stream in STREAMS), *(bucket.stream for bucket in BUCKETS)):
        if name in PASSING:
            continue
        state = (await js.stream_info(name)).state
        for sequence in range(max(1, state.first_seq), state.last_seq + 1):
            try:
                message = await js.get_msg(name, sequence)
            except NotFoundError:
                continue
            body = message.data or b""
            try:
                text = {"text": body.decode()}
            except UnicodeDecodeError:
                text = {"base64": base64.b64encode(body).decode()}
            line = {
                "stream": name,
                "seq": sequence,
                "subject": message.subject,
                "headers": message.headers or {},
                **text,
            }
            yield json.dumps(line, ensure_ascii=False) + "\n"


async def table_rows(conn: asyncpg.Connection) -> bytes:
    """Return the rows of every table in COPY's text format, each under a line that names its columns."""
    parts = []
    tables = await conn.fetch(
        """
        SELECT n.nspname, c.relname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE n.nspname = ANY ($1) AND c.relkind IN ('r', 'p') AND NOT c.relispartition
            AND c.relname NOT IN ('applied_migrations', 'probe_writes')
        ORDER BY 1, 2
        """,
        list(SCHEMAS),
    )
    for schema, table in tables:
        columns = await conn.fetch(
            """
            SELECT attname, format_type(atttypid, NULL) AS type FROM pg_attribute
            WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
            ORDER BY attnum
            """,
            f'"{schema}"."{table}"',
        )
        names = ", ".join(f'"{one["attname"]}"' for one in columns)
        rows = io.BytesIO()
        await conn.copy_from_query(f'SELECT {names} FROM "{schema}"."{table}"', output=rows, format="text")
        if rows.getvalue():
            head = {"table": f"{schema}.{table}", "columns": {one["attname"]: one["type"] for one in columns}}
            parts.append(b"# " + json.dumps(head).encode() + b"\n" + rows.getvalue())
    return b"".join(parts)
