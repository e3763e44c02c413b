"""A user is forgotten in every store, with a receipt; another user's jobs, and another tenant's, stay whole."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from pathlib import Path
from secrets import choice, token_hex
from string import ascii_lowercase
from typing import Any

import asyncpg
import httpx2
import pytest

from wayline.chassis.stream_limits import Limits
from wayline.contracts.events import ToolCompleted
from wayline.contracts.tenants import CreateTenant, Tenant
from wayline.journal import JobLog
from wayline.notifier.settings import Settings as NotifierSettings
from wayline.simulator.chat_server import ChatServer, Say
from wayline.testkit import Platform, until

from .conftest import chatting

ON_DISK = Limits(ack_wait_s=2)
SERVICES = ("router", "tool_registry", "executor", "retrieval", "tracing", "notifier", "gateway")
MANY, AT_ONCE = 1_000, 50
"""Jobs of one user, and how many of them run at a time."""
NOTIFIER = NotifierSettings.model_validate({"keys": f"k1:{b64encode(bytes(32)).decode()}"})


async def submit(
    platform: Platform, job_id: str, text: str, *, user: str, tenant: str = "default", session: str | None = None
) -> None:
    body = {"agent": "assistant", "input": text, "job_id": job_id, "user_id": user, "session_id": session}
    await platform.publish({**body, "options": {"model": "chat/m"}}, tenant=tenant)


async def forgotten(http: httpx2.AsyncClient, asked: httpx2.Response, *, within: float = 60) -> dict[str, Any]:
    """Wait until a request to forget is done, and return it."""
    assert asked.status_code == 202, asked.text
    told: list[dict[str, Any]] = []

    async def done() -> bool:
        told[:] = [(await http.get(asked.headers["Location"])).json()]
        return told[0]["step"] == "done"

    try:
        await until(done, within=within, why="all is forgotten")
    except AssertionError as error:
        raise AssertionError(f"{error}: {told}") from None
    return told[0]


def marker() -> str:
    """Return a word that stands nowhere else, and that no memory takes for a secret."""
    return "zeppelin" + "".join(choice(ascii_lowercase) for _ in range(10))


async def dead_letters(platform: Platform) -> int:
    return (await platform.bus.js.stream_info("DEAD")).state.messages


async def leave_a_memory_and_refusals(platform: Platform, http: httpx2.AsyncClient, word: str, *, user: str) -> None:
    """Have a fact remembered of a user, and submit what nobody can read and what nobody answers."""
    liked = {"user_id": user, "facts": [{"text": f"Likes the {word}", "category": "preference"}]}
    saved = await http.post("/v1/memories", json=liked)
    assert [one["outcome"] for one in saved.json()["outcomes"]] == ["saved"], saved.text
    await platform.bus.store("jobs.submit.default", json.dumps({"user_id": user, "input": word}).encode(), {})
    await platform.publish({"agent": "nobody", "input": word, "job_id": "refused", "user_id": user})
    await until(lambda: dead_letters(platform), why="what nobody can read is a dead letter")
    await platform.wait_for("refused")


def files_with(directory: Path, text: str) -> list[str]:
    """Return the files below a directory that hold a text."""
    files = (path for path in directory.rglob("*") if path.is_file())
    return sorted(str(path.relative_to(directory)) for path in files if text.encode() in path.read_bytes())


async def run_as_administrator(platform: Platform, *statements: str) -> None:
    conn = await asyncpg.connect(platform.database.dsn)
    try:
        for statement in statements:
            await conn.execute(statement)
    finally:
        await conn.close()


async def analyze_tables(platform: Platform) -> None:
    """Do what autovacuum does now and then: keep common values of each column for the planner, words of people too."""
    await run_as_administrator(platform, "ANALYZE")


async def rewrite_tables(platform: Platform) -> None:
    """Do what an administrator does whom docs/forgetting.md tells how to leave nothing in Postgres' files."""
    await run_as_administrator(
        platform,
        "ALTER SYSTEM SET wal_recycle = off",
        "SELECT pg_reload_conf()",
        "DELETE FROM pg_statistic",
        "VACUUM FULL",
        "SELECT pg_switch_wal()",
        "CHECKPOINT",
        "CHECKPOINT",
        "ALTER SYSTEM RESET wal_recycle",
        "SELECT pg_reload_conf()",
        "ANALYZE",
    )


def receipt_of(told: dict[str, Any]) -> dict[str, dict[str, int]]:
    return {one["store"]: one["counts"] for one in told["receipt"]}


@pytest.mark.parametrize("platform", [ON_DISK], indirect=True)
@pytest.mark.not_replayed("its logs are gone")
async def test_a_user_is_forgotten_everywhere_with_a_receipt(platform: Platform):
    word, ann, hold, begun = marker(), f"ann-{token_hex(6)}", asyncio.Event(), asyncio.Event()

    def answer(body: dict[str, Any]) -> Say:
        said = body["messages"][-1]
        if said["role"] == "user" and "Look up" in said["content"]:
            return Say(tools=(("search_knowledge", {"query": word}),))
        slow = "wait for it" in said["content"]
        begun.set() if slow else None
        return Say(text=f"You said: {body['messages'][-1]['content']}", hold=hold if slow else None)

    async with ChatServer(answer) as chat:
        await platform.start(*SERVICES, executor=chatting(chat), notifier=NOTIFIER)
        await platform.bus.ask(CreateTenant(tenant="acme"), Tenant)
        http = await platform.http()
        await http.put("/v1/webhooks/crm", json={"url": "http://10.0.0.1/never-reached", "content": True})
        await submit(platform, "first", f"I like the {word} more than trains.", user=ann, session="talk")
        await platform.wait_for("first")
        large = {"agent": "assistant", "input": f"{word} " * 15_000, "job_id": "large", "user_id": ann}
        await http.post("/v1/jobs", json={**large, "options": {"model": "chat/m"}})
        sent = await http.post("/v1/documents", json={"name": "n.md", "text": f"On the {word}.", "user_id": ann})
        await platform.wait_until_empty("INDEX")
        await submit(platform, "second", f"Look up why the {word} is so good to me.", user=ann, session="talk")
        await submit(platform, "bobs", "I like trains more than that.", user="bob", session="other")
        await submit(platform, "theirs", "The same user in another tenant.", user=ann, tenant="acme")
        for path in ("/v1/jobs", "/v1/sessions", "/v1/agents/assistant/latest"):
            assert (await http.get(path, params={"user_id": ann})).status_code == 200
        for job_id, tenant in (("second", "default"), ("bobs", "default"), ("large", "default"), ("theirs", "acme")):
            await platform.wait_for(job_id, tenant)
        assert [word in (one.content or "") for one in await platform.events_of("second", ToolCompleted)] == [True]
        await submit(platform, "running", f"Now wait for it, the {word} comes.", user=ann)
        await begun.wait()
        await leave_a_memory_and_refusals(platform, http, word, user=ann)
        await analyze_tables(platform)
        assert files_with(platform.nats.server.data_dir, word) != []

        asked, again = [await http.post("/v1/forget", json={"user_id": ann}) for _ in range(2)]
        # It waits until the other is done, and is whole then.
        await submit(platform, "later", "What do you know of me by now?", user=ann, session="talk")
        told = await forgotten(http, asked)
        later = await platform.wait_for("later")

        assert again.json()["forget_id"] == asked.json()["forget_id"]
        assert (told["left"], told["user_id"], told["jobs"]) == ({}, None, 6), told
        counts = receipt_of(told)
        assert set(counts) == {"logs", "gateway", "registry", "retrieval", "router", "tracing", "notifier"}
        assert counts["logs"]["payloads"] >= 1 and counts["logs"]["log_records"] >= 8 and counts["logs"]["signals"] >= 1
        assert (counts["router"]["sessions"], counts["router"]["latest_results"]) == (1, 1)
        assert counts["logs"]["dead_letters"] >= 1 and counts["tracing"]["jobs"] == 6 and counts["tracing"]["spans"] > 0
        assert (counts["retrieval"]["documents"], counts["retrieval"]["facts"]) == (1, 1)
        assert later.status == "completed" and (later.answer or "").startswith(
            "You said: What do you know of me by now?"
        )
        for job_id in ("first", "second", "large", "running"):
            assert (await http.get(f"/v1/jobs/{job_id}")).status_code == 404
        assert (await http.get(f"/v1/documents/{sent.json()['document_id']}")).status_code == 404
        assert (await http.get("/v1/jobs/bobs")).json()["answer"].startswith("You said: I like trains")
        assert await JobLog(platform.bus, "acme", "theirs").last() is not None
        await platform.wait_until_empty("SUBMIT", "RUN", "INDEX", "TELEMETRY")
        assert files_with(platform.nats.server.data_dir, word) == []
        assert files_with(platform.database.server.data, word) != []
        await rewrite_tables(platform)
        assert files_with(platform.database.server.data, word) == []


@pytest.mark.parametrize("platform", [ON_DISK], indirect=True)
@pytest.mark.not_replayed("its log is gone")
async def test_an_ended_job_is_deleted_and_its_neighbours_stay(platform: Platform):
    word, hold, begun = f"zeppelin{token_hex(6)}", asyncio.Event(), asyncio.Event()

    def answer(body: dict[str, Any]) -> Say:
        slow = "wait for it" in body["messages"][-1]["content"]
        begun.set() if slow else None
        return Say(text="Yes.", hold=hold if slow else None)

    async with ChatServer(answer) as chat:
        await platform.start(*SERVICES, executor=chatting(chat))
        http = await platform.http()
        await submit(platform, "gone", f"The {word} comes and goes as it likes.", user="ann")
        await submit(platform, "kept", "Something else that is long enough.", user="ann")
        for job_id in ("gone", "kept"):
            await platform.wait_for(job_id)
        await submit(platform, "running", "wait for it", user="ann")
        await begun.wait()

        refused = await http.delete("/v1/jobs/running")
        unknown = await http.delete("/v1/jobs/nobody-knows")
        told = await forgotten(http, await http.delete("/v1/jobs/gone"))
        hold.set()
        await platform.wait_for("running")

        assert (refused.status_code, refused.json()["code"], unknown.status_code) == (409, "job_not_ended", 404)
        assert (told["what"], told["job_id"], told["jobs"], told["left"]) == ("job", "gone", 1, {})
        assert (await http.get("/v1/jobs/gone")).status_code == 404
        assert (await http.get("/v1/jobs/kept")).json()["answer"].startswith("Yes.")
        listed = (await http.get("/v1/jobs")).json()["jobs"]
        assert {one["job_id"] for one in listed} == {"kept", "running"}
        await platform.wait_until_empty("SUBMIT", "RUN", "TELEMETRY")
        assert files_with(platform.nats.server.data_dir, word) == []


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("platform", [ON_DISK], indirect=True)
@pytest.mark.not_replayed("its logs are gone")
async def test_a_user_of_a_thousand_jobs_leaves_no_word(platform: Platform):
    word, ann = marker(), f"ann-{token_hex(6)}"

    async def run(number: int) -> None:
        # One in ten is a turn of a session, and one in fifty too large for a message.
        text = f"The {word} number {number} came. " * (2_000 if number % 50 == 1 else 1)
        session = f"talk-{number // 100}" if number % 10 == 0 else None
        await submit(platform, f"job-{number}", text, user=ann, session=session)
        assert (await platform.wait_for(f"job-{number}", within=600)).status == "completed"

    async with ChatServer(lambda body: Say(text=f"You said: {body['messages'][-1]['content'][:100]}")) as chat:
        await platform.start(*SERVICES, executor=chatting(chat), notifier=NOTIFIER)
        http = await platform.http()
        await http.post("/v1/documents", json={"name": "n.md", "text": f"On the {word}.", "user_id": ann})
        for first in range(0, MANY, AT_ONCE):
            await asyncio.gather(*map(run, range(first, first + AT_ONCE)))
        liked = {"user_id": ann, "facts": [{"text": f"Likes the {word}", "category": "preference"}]}
        await http.post("/v1/memories", json=liked)
        await platform.wait_until_empty("SUBMIT", "RUN", "INDEX", "TELEMETRY")
        await analyze_tables(platform)
        assert files_with(platform.nats.server.data_dir, word) != []

        told = await forgotten(http, await http.post("/v1/forget", json={"user_id": ann}), within=1_800)

        counts = receipt_of(told)
        assert (told["left"], told["jobs"], counts["tracing"]["jobs"]) == ({}, MANY, MANY), told
        assert (counts["retrieval"]["facts"], counts["router"]["sessions"]) == (1, MANY // 100)
        await platform.wait_until_empty("SUBMIT", "RUN", "INDEX", "TELEMETRY")
        assert files_with(platform.nats.server.data_dir, word) == []
        await rewrite_tables(platform)
        assert files_with(platform.database.server.data, word) == []
