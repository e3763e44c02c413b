"""What the last release left on the bus and in the database is read by this version, and goes on where it stood."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import asyncpg
import httpx2
import pytest
import pytest_asyncio

from wayline.contracts.base import CATALOGUE, Message
from wayline.contracts.events import SessionContinued
from wayline.embedded import PostgresServer
from wayline.journal import fold, read_record
from wayline.simulator.chat_server import ChatServer
from wayline.testkit import Platform
from wayline.testkit.databases import clone, drop, migrate_service
from wayline.testkit.effects_server import EffectsServer
from wayline.testkit.fixtures import ForkedNats
from wayline.testkit.guarded import Guarded, config, identity_seeds

from .record import EFFECTS_PORT, SCHEMAS, SERVICES, only_run, script, start, until_listed
from .restore import Release, fill_streams, fill_tables, migrate_as_then, releases

pytestmark = pytest.mark.asyncio(loop_scope="module")

LAST = releases()[-1]
OWN_STORES = ("OBJ_", "KV_")
OURS = {
    "router": "router",
    "tools": "tool_registry",
    "gateway": "gateway",
    "retrieval": "retrieval",
    "tracing": "tracing",
    "notifier": "notifier",
}
"""The schemas, and the services that own them."""


@dataclass(frozen=True)
class Restored:
    """A platform of this version that goes on where the release stopped."""

    platform: Platform
    effects: EffectsServer
    http: httpx2.AsyncClient
    rows_before: dict[str, int]
    rows_after: dict[str, int]
    """Of each table that had rows, before and after it was migrated."""


def kind_of(subject: str) -> type[Message]:
    """Return the message that travels on a subject. Raises StopIteration where it means nothing any more."""
    words = subject.split(".")
    patterns = ((kind, kind.listens().split(".")) for kind in CATALOGUE.values())
    return next(
        kind
        for kind, pattern in patterns
        if len(pattern) == len(words) and all(one in ("*", word) for one, word in zip(pattern, words, strict=True))
    )


async def count_rows(conn: asyncpg.Connection, release: Release) -> dict[str, int]:
    return {table.name: await conn.fetchval(f"SELECT count(*) FROM {table.name}") for table in release.tables()}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def restored(
    postgres_server: PostgresServer, server_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Restored]:
    """Restore the last release, migrate it, and start this version's services on it."""
    home, seeds = server_dir / f"release-{secrets.token_hex(4)}", identity_seeds()
    database = await clone(postgres_server)
    server = await ForkedNats(home, config=config(home / "jetstream", seeds)).start()
    effects, only = EffectsServer(home / "effects.txt", port=EFFECTS_PORT), AsyncExitStack()
    await only.enter_async_context(only_run())
    try:
        await effects.start()
        await migrate_as_then(database, LAST, tmp_path_factory.mktemp("migrations"))
        guarded = Guarded(server, seeds)
        async with (
            Platform.open(guarded, database) as platform,
            platform.superuser() as conn,
            ChatServer(script) as chat,
        ):
            await fill_tables(conn, LAST)
            before = await count_rows(conn, LAST)
            for service in OURS.values():
                await migrate_service(database, service)
            after = await count_rows(conn, LAST)
            await fill_streams(platform.bus.js, LAST)
            await start(platform, effects, chat, *SERVICES)
            await until_listed(platform, "effects__pay_once")
            http = await platform.http()
            http.headers["Authorization"] = f"Bearer {LAST.about['api_key']}"
            yield Restored(platform, effects, http, before, after)
        assert guarded.refusals() == []
    finally:
        effects.kill()
        await server.kill()
        shutil.rmtree(home, ignore_errors=True)
        await drop(database)
        await only.aclose()


async def test_every_message_of_a_release_is_read():
    logs: dict[str, list] = {}
    for message in LAST.messages():
        if message.stream == "EVENTS":
            logs.setdefault(message.subject, []).extend(read_record(message.body))
        elif not message.stream.startswith(OWN_STORES) and message.stream not in {"DEAD", "TELEMETRY"}:
            kind_of(message.subject).from_wire(message.body, message.subject)

    jobs = {subject.rpartition(".")[2]: fold(events) for subject, events in logs.items()}
    assert {name: str(job.life.status) for name, job in jobs.items()} == {
        "ended": "completed",
        "turn1": "completed",
        "turn2": "completed",
        "parked": "parked",
        "program": "parked",
        "queued": "queued",
    }


async def test_migrating_a_release_keeps_every_row(restored: Restored):
    assert restored.rows_after == restored.rows_before
    assert {name.split(".")[0] for name in restored.rows_after} == set(SCHEMAS)


async def test_an_approval_that_waited_is_decided_and_paid_once(restored: Restored):
    platform = restored.platform
    [asked] = (await platform.job("parked")).tools.pending

    await platform.decide("parked", asked.approval_id, by="ann")

    ended = await platform.wait_for("parked")
    assert (ended.status, ended.answer) == ("completed", "It is done.")
    assert restored.effects.count("pay_once", "default/parked/1/2") == 1
    assert restored.effects.count("look_read", "default/parked/1/1") == 0, "its result is in the log of the release"


async def test_a_program_that_was_suspended_goes_on_from_its_snapshot(restored: Restored):
    platform = restored.platform
    [asked] = (await platform.job("program")).tools.pending

    await platform.decide("program", asked.approval_id, by="ann")

    assert (await platform.wait_for("program")).answer == "It is done."
    assert restored.effects.count("pay_once", "default/program/1/c2") == 1
    assert restored.effects.count("put_idempotent", "default/program/1/c1") == 0


async def test_tickets_and_submissions_that_waited_become_ended_jobs(restored: Restored):
    for job_id in ("queued", "submitted"):
        assert (await restored.platform.wait_for(job_id)).answer == "It is done."


async def test_a_session_continues_with_its_history(restored: Restored):
    body = {"agent": "plain", "input": "This is turn 3", "job_id": "turn3", "session_id": "talk", "user_id": "ann"}
    await restored.platform.publish({**body, "options": {"model": "chat/m"}})

    ended = await restored.platform.wait_for("turn3")

    assert ended.answer == "You said: This is turn 3"
    [continued] = await restored.platform.events_of("turn3", SessionContinued)
    assert continued.lost is None
    turns = (await restored.http.get("/v1/sessions/talk")).json()["page"]
    assert [turn["job"]["job_id"] for turn in turns] == ["turn3", "turn2", "turn1"]


async def test_what_was_remembered_indexed_and_saved_is_found(restored: Restored):
    http = restored.http
    memories = (await http.post("/v1/memories/recall", json={"user_id": "ann", "search_terms": ["Bonn"]})).json()
    about = {"type": "person", "id": "jo"}
    insights = (await http.post("/v1/insights/recall", json={"subject": about, "query": "What does Jo like?"})).json()
    passages = (await http.post("/v1/search", json={"query": "moon and sea"})).json()

    assert [fact["text"] for fact in memories["facts"]] == ["Lives in Bonn."]
    assert [fact["text"] for fact in insights["facts"]] == ["Jo likes long walks."]
    assert [passage["document_id"] for passage in passages["hits"]] == ["tides"]


async def test_configuration_keys_costs_and_dead_letters_stay(restored: Restored):
    http = restored.http
    me = (await http.get("/v1/me")).json()
    budget = (await http.get("/v1/budgets")).json()["budgets"][0]
    named = {
        "agents": [one["name"] for one in (await http.get("/v1/agents")).json()["agents"]],
        "schedules": [one["name"] for one in (await http.get("/v1/schedules")).json()["schedules"]],
        "webhooks": [one["name"] for one in (await http.get("/v1/webhooks")).json()["webhooks"]],
        "prompts": [one["name"] for one in (await http.get("/v1/prompts")).json()["prompts"]],
        "servers": [one["name"] for one in (await http.get("/v1/mcp/servers")).json()["servers"]],
    }
    letters = (await http.get("/v1/dead-letters")).json()["dead_letters"]
    ended = (await http.get("/v1/jobs/ended")).json()
    trace = (await http.get("/v1/jobs/ended/trace")).json()

    assert (me["name"], me["open"]) == ("recorded", False)
    assert (budget["name"], budget["limit_usd"]) == ("month", "5")
    known = {"schedules": ["yearly"], "webhooks": ["crm"], "prompts": ["review"]}
    assert {kind: named[kind] for kind in known} == known
    assert {"careful", "coder", "plain"} <= set(named["agents"])
    assert "bank" in named["servers"]
    assert len(letters) == 1
    assert (ended["status"], ended["answer"]) == ("completed", "It is done.")
    assert len(trace["root"]["children"]) >= 2
