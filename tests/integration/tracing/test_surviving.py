"""Kills, outages and rebuilds change nothing of what the tables say."""

import asyncio
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from wayline.chassis import Failpoint
from wayline.chassis.claim_check.payloads import Payloads
from wayline.chassis.handling.batches import ALONE_TRIES
from wayline.chassis.topology import EVENTS_TRACING
from wayline.contracts import ids
from wayline.telemetry import JobTrace
from wayline.testkit import until
from wayline.testkit.service_starts import start_service
from wayline.tracing.rebuild import Rebuilt, rebuild

from .conftest import AS_RECORD, QUICK, ExportedSpans, Log, Start, TracingPlatform, flat

LOG_MADE = ("SELECT * FROM jobs", "SELECT * FROM steps", "SELECT * FROM ledger", "SELECT * FROM spans WHERE seq > 0")


async def log_made(platform: TracingPlatform) -> list[list[dict[str, Any]]]:
    return [sorted(await platform.rows(statement), key=str) for statement in LOG_MADE]


@pytest.mark.parametrize(
    "point", [Failpoint.TRACING_STORE_BEFORE, Failpoint.TRACING_STORE_AFTER, Failpoint.TRACING_ACK_AFTER]
)
async def test_a_kill_around_the_store_loses_nothing_and_doubles_nothing(
    platform: TracingPlatform, start: Start, tmp_path: Path, point: Failpoint
):
    quick = replace(EVENTS_TRACING, ack_wait_s=0.5)
    await platform.bus.js.add_consumer("EVENTS", quick.config())
    await Log(platform.bus).whole()
    environment = {
        **os.environ,
        "WAYLINE_NATS_URL": platform.settings.nats_url,
        "WAYLINE_NATS_SEED": platform.settings.nats_seed or "",
        "WAYLINE_NATS_ACCOUNTS": "true",
        "WAYLINE_POSTGRES_DSN": platform.settings.postgres_dsn or "",
        "WAYLINE_FAILPOINT": point,
    }
    child = await asyncio.to_thread(start_service, "tracing", cwd=tmp_path, log=tmp_path / "log", env=environment)
    await until(lambda: child.exited, within=60, why="tracing reaches the failpoint")
    assert child.process.returncode == -signal.SIGKILL

    await start()
    await platform.wait_until_read()

    trace = await platform.trace("j1")
    assert len(flat(trace.root)) == 6
    assert str(trace.totals.cost_usd) == "0.012"
    assert await platform.rows("SELECT count(*) AS n FROM ledger") == [{"n": 3}]


async def test_tables_made_anew_from_the_log_are_the_same_tables(platform: TracingPlatform, start: Start):
    service = await start()
    for number in range(5):
        await Log(platform.bus, job_id=f"j{number}").whole()
    running = Log(platform.bus, job_id="running")
    await running.append(running.submitted(), running.routed(), running.claimed(), running.asked_model(1))
    await platform.bus.store("events.acme.poison", b"{not json", AS_RECORD)
    registry = ExportedSpans()
    with registry.handling(JobTrace.of("acme", "j1", ids.tool_span("acme", "j1", 1, "1"))):
        pass
    await platform.send_spans(registry.finished)
    await platform.wait_until_read()
    before, tree = await log_made(platform), await platform.trace("j1")
    async with platform.tables.system() as conn:
        await conn.execute(
            "UPDATE ledger SET cost_usd = 99; DELETE FROM steps; UPDATE spans SET name = '?' WHERE seq > 0"
        )

    assert await rebuild(service.bus, platform.tables, spans_days=7) == Rebuilt(records=31, unreadable=1, kept=1)

    assert await log_made(platform) == before
    assert await platform.trace("j1") == tree


@pytest.mark.parametrize("left", [0, 3])
async def test_a_rebuild_keeps_the_rows_of_a_log_without_its_beginning(
    platform: TracingPlatform, start: Start, left: int
):
    service = await start()
    await Log(platform.bus).whole()
    await platform.wait_until_read()
    before = await log_made(platform)
    await platform.bus.js.purge_stream("EVENTS", keep=left)

    assert await rebuild(service.bus, platform.tables, spans_days=7) == Rebuilt(0, 0, kept=1 if left else 0)

    assert await log_made(platform) == before


async def test_jobs_go_on_while_the_tables_are_made_anew(platform: TracingPlatform, start: Start):
    service = await start(QUICK.model_copy(update={"linger_ms": 0, "idle_linger_ms": 0}))
    logs = [Log(platform.bus, job_id=f"j{number}") for number in range(20)]
    for log in logs:
        await log.append(log.submitted(), log.routed())
        await log.append(log.claimed(), log.asked_model(1))
    await platform.wait_until_read()

    async def go_on() -> None:
        for step in range(1, 4):
            for log in logs:
                await log.append(log.model_answered(step, "look", calls=("1",)), log.asked_tool(step))
            for log in logs:
                await log.append(log.tool_answered(step, cost="0.01"), log.asked_model(step + 1))
        for log in logs:
            await log.append(log.model_answered(4, "because"), log.completed())

    going = asyncio.create_task(go_on())
    while not going.done():
        await rebuild(service.bus, platform.tables, spans_days=7)
    await platform.wait_until_read()

    sums = await platform.rows("SELECT job_id, count(*) AS n, sum(cost_usd) AS usd FROM ledger GROUP BY 1")
    assert {(row["n"], str(row["usd"])) for row in sums} == {(7, "0.034")}
    assert len(sums) == len(logs)
    assert {row["status"] for row in await platform.rows("SELECT status FROM jobs")} == {"completed"}
    by_the_way = await log_made(platform)
    await rebuild(service.bus, platform.tables, spans_days=7)
    assert await log_made(platform) == by_the_way


async def test_records_wait_for_a_postgres_that_breaks_every_connection(platform: TracingPlatform, start: Start):
    await start()
    await Log(platform.bus).whole()
    await platform.wait_until_read()
    admin = await asyncpg.connect(platform.database.dsn)
    await admin.execute("ALTER ROLE wayline_tracing CONNECTION LIMIT 0")
    await admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'wayline_tracing'")

    await Log(platform.bus, job_id="j2").whole()
    await admin.execute("ALTER ROLE wayline_tracing CONNECTION LIMIT -1")
    await admin.close()
    await platform.wait_until_read()

    assert await platform.rows("SELECT job_id FROM jobs ORDER BY 1") == [{"job_id": "j1"}, {"job_id": "j2"}]
    assert (await platform.bus.js.stream_info("DEAD")).state.messages == 0


async def test_an_unstorable_dead_letter_is_retried_and_stops_nothing(
    platform: TracingPlatform, start: Start, monkeypatch: pytest.MonkeyPatch
):
    quick = replace(EVENTS_TRACING, ack_wait_s=0.5)
    monkeypatch.setattr("wayline.tracing.app.EVENTS_TRACING", quick)
    await platform.bus.js.add_consumer("EVENTS", quick.config())
    letters = (await platform.bus.js.stream_info("DEAD")).config
    await platform.bus.js.update_stream(letters.evolve(max_msg_size=1))
    poison = await platform.bus.store("events.acme.poison", b"{not json", AS_RECORD)
    await Log(platform.bus).whole()
    service = await start(QUICK.model_copy(update={"linger_ms": 100, "idle_linger_ms": 100}))

    async def health() -> str:
        return (await service.ready())["records"]

    async def stored() -> bool:
        return await platform.seq("j1") == 10

    await until(stored, why="its neighbours are stored")
    assert "is full" in await health()
    await Log(platform.bus, job_id="j2").whole()
    await until(lambda: platform.seq("j2"), why="what comes later is stored too")

    await platform.bus.js.update_stream(letters)
    await platform.wait_until_read()

    letter = await platform.bus.js.get_msg("DEAD", 1)
    headers = letter.headers or {}
    assert (headers["Wayline-Dead-Code"], headers["Wayline-Dead-Sequence"]) == ("invalid_record", str(poison.seq))

    async def well() -> bool:
        return await health() == "ok"

    await until(well, why="the trouble is over")


async def test_a_reader_that_ended_is_not_ready(platform: TracingPlatform, start: Start):
    service = await start()
    assert (await service.ready())["spans"] == "ok"

    await service.stop(1)

    assert "it is not running" in (await service.ready())["spans"]


async def test_a_record_waits_for_its_payload_over_many_deliveries(
    platform: TracingPlatform, start: Start, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("wayline.chassis.handling.batches.RETRY_S", 0.001)
    log = Log(platform.bus)
    await log.append(log.submitted(), log.routed())
    await log.append(log.claimed(), log.asked_model(1), log.model_answered(1, calls=("1",)), log.asked_tool(1))
    await log.append(log.tool_answered(1, "x" * 400_000))
    payloads = Payloads(platform.bus.nc, platform.bus.api, platform.bus.request)
    [entry] = await (await platform.bus.js.object_store("PAYLOADS")).list()
    payload = await payloads.get(entry.name)
    await payloads.delete(entry.name)

    await start()

    async def delivered_often() -> bool:
        info = await platform.bus.js.consumer_info("EVENTS", "tracing")
        return info.delivered is not None and info.delivered.consumer_seq > 3 + 2 * ALONE_TRIES

    await until(delivered_often, why="the record came more often than a bad one may")
    await payloads.put(entry.name, payload)
    await platform.wait_until_read()

    assert (await platform.rows("SELECT output FROM steps"))[0]["output"].startswith("x" * 1_000)
    assert (await platform.bus.js.stream_info("DEAD")).state.messages == 0
