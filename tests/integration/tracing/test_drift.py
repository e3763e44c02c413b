"""A database that cannot store for a while loses nothing, and tables that lost something are made good."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import asyncpg
import pytest
from prometheus_client import REGISTRY

from wayline.chassis.handling.batches import ALONE_TRIES
from wayline.chassis.topology import EVENTS_TRACING
from wayline.testkit import until
from wayline.testkit.walks import cases
from wayline.tracing.consume.stored_ranges import StoredRanges
from wayline.tracing.upkeep.drift import DriftCheck

from .conftest import QUICK, Log, Start, TracingPlatform

CHECKING = QUICK.model_copy(update={"drift_every_s": 0.05})
NEVER_CHECKING = QUICK.model_copy(update={"drift_every_s": 3_600})
ALL = ("SELECT * FROM jobs", "SELECT * FROM steps", "SELECT * FROM ledger", "SELECT * FROM spans WHERE seq > 0")


async def rows(platform: TracingPlatform) -> list[list[dict[str, Any]]]:
    return [sorted(await platform.rows(statement), key=str) for statement in ALL]


async def letters(platform: TracingPlatform) -> int:
    return (await platform.bus.js.stream_info("DEAD")).state.messages


def mended(drift: str) -> float:
    labels = {"drift": drift, "outcome": "mended"}
    return REGISTRY.get_sample_value("wayline_tracing_drift_total", labels) or 0.0


@pytest.fixture
async def admin(platform: TracingPlatform) -> AsyncIterator[asyncpg.Connection]:
    conn = await asyncpg.connect(platform.database.dsn)
    yield conn
    await conn.close()


async def refuse(admin: asyncpg.Connection, state: str) -> None:
    """Have every write of a job fail with an SQLSTATE."""
    await admin.execute(f"""
        CREATE SEQUENCE refusals;
        GRANT USAGE ON SEQUENCE refusals TO wayline_tracing;
        CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            PERFORM nextval('public.refusals');
            RAISE EXCEPTION 'injected' USING ERRCODE = '{state}';
        END $$;
        CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON tracing.jobs FOR EACH ROW EXECUTE FUNCTION refuse();
    """)


@pytest.mark.parametrize("state", cases(["53100", "53200", "25006", "57014", "58030"]))
async def test_a_record_that_postgres_has_no_room_for_waits(
    platform: TracingPlatform, start: Start, admin: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch, state: str
):
    monkeypatch.setattr("wayline.chassis.handling.batches.RETRY_S", 0.01)
    await refuse(admin, state)
    await start(NEVER_CHECKING)
    await Log(platform.bus).whole()

    async def refused_often() -> bool:
        return await admin.fetchval("SELECT last_value FROM refusals") > 2 * ALONE_TRIES  # pyright: ignore[reportOptionalOperand]

    await until(refused_often, why="it was tried more often than a bad one may be")
    info = await platform.bus.js.consumer_info(EVENTS_TRACING.stream, EVENTS_TRACING.name)
    await admin.execute("DROP TRIGGER refuse ON tracing.jobs")
    await platform.wait_until_read()

    assert (info.num_redelivered, await letters(platform)) == (0, 0)
    assert await platform.seq("j1") == 10


async def test_what_was_put_aside_is_projected_by_itself(
    platform: TracingPlatform, start: Start, admin: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("wayline.chassis.handling.batches.ALONE_TRIES", 1)
    await start(CHECKING)
    await Log(platform.bus, job_id="well").whole()
    await platform.wait_until_read()
    await refuse(admin, "XX000")
    before = mended("behind")
    await Log(platform.bus, job_id="j1").whole()
    running = Log(platform.bus, job_id="running")
    await running.append(running.submitted(), running.routed(), running.claimed(), running.asked_model(1))
    await platform.wait_until_read()
    assert await letters(platform) == 7
    assert await platform.rows("SELECT job_id FROM jobs") == [{"job_id": "well"}]

    await admin.execute("DROP TRIGGER refuse ON tracing.jobs")

    async def made_good() -> bool:
        return await platform.seq("j1") == 10 and await platform.seq("running") == 4

    await until(made_good, why="both jobs are in the tables")
    assert str((await platform.trace("j1")).totals.cost_usd) == "0.012"
    await until(lambda: mended("behind") - before == 2, why="both are counted")


@pytest.mark.parametrize(
    "loss",
    cases(
        [
            "DELETE FROM ledger WHERE job_id = 'j1' AND kind = 'tool'",
            "UPDATE ledger SET cost_usd = 99 WHERE job_id = 'j1'",
            "DELETE FROM steps WHERE job_id = 'j1' AND step = 1",
            "DELETE FROM jobs WHERE job_id = 'j1'",
            "DELETE FROM jobs; DELETE FROM steps; DELETE FROM ledger",
        ]
    ),
)
async def test_rows_that_are_lost_come_back(platform: TracingPlatform, start: Start, loss: str):
    await start(CHECKING)
    for job_id in ("j1", "j2"):
        await Log(platform.bus, job_id=job_id).whole()
    await platform.wait_until_read()
    before = await rows(platform)

    async with platform.tables.system() as conn:
        await conn.execute(loss)

    async def the_same() -> bool:
        return await rows(platform) == before

    await until(the_same, why="the tables are as they were")


async def test_tables_that_are_right_are_left_alone(platform: TracingPlatform, start: Start):
    service = await start(NEVER_CHECKING)
    for number in range(5):
        await Log(platform.bus, job_id=f"j{number}").whole()
    running = Log(platform.bus, job_id="running")
    await running.append(running.submitted(), running.routed(), running.claimed(), running.asked_model(1))
    refused = Log(platform.bus, job_id="refused")
    await refused.append(refused.submitted(), refused.failed())
    await platform.bus.store("events.acme.foreign", b"{}", {})
    await platform.wait_until_read()
    found = {drift: mended(drift) for drift in ("behind", "incomplete")}
    [check] = [part for part in service.parts if getattr(part, "_what", "") == "drift check"]

    await check._do()  # type: ignore[attr-defined]
    await check._do()  # type: ignore[attr-defined]

    assert {drift: mended(drift) for drift in ("behind", "incomplete")} == found


async def test_records_that_are_not_acked_yet_are_not_missing(platform: TracingPlatform, start: Start):
    quick = replace(EVENTS_TRACING, ack_wait_s=30)
    await platform.bus.js.add_consumer("EVENTS", quick.config())
    await start(CHECKING.model_copy(update={"linger_ms": 600, "idle_linger_ms": 600}))
    before = mended("behind")

    await Log(platform.bus).whole()
    await platform.wait_until_read()

    assert mended("behind") == before


async def test_a_check_that_starts_again_goes_on_from_its_place(
    platform: TracingPlatform, start: Start, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("wayline.tracing.upkeep.drift.RECORDS_MAX", 2)
    for number in range(3):
        await Log(platform.bus, job_id=f"j{number}").whole()
    service = await start(NEVER_CHECKING)
    await platform.wait_until_read()
    [check] = [part for part in service.parts if getattr(part, "_what", "") == "drift check"]
    await check._do()  # type: ignore[attr-defined]
    read: list[int] = []
    walk = DriftCheck._walk

    async def noted(self: DriftCheck, after: int, upto: int, *, most: int) -> tuple[int, int]:
        read.append(after)
        return await walk(self, after, upto, most=most)

    monkeypatch.setattr(DriftCheck, "_walk", noted)
    tables: Any = check._do.__self__._tables  # type: ignore[attr-defined]
    projector: Any = None
    again = DriftCheck(platform.bus, tables, projector, keep_days=400, stored=StoredRanges())
    await Log(platform.bus, job_id="later").whole()
    await platform.wait_until_read()

    await again.check()

    assert read[0] >= 18
    assert REGISTRY.get_sample_value("wayline_tracing_drift_lag") == 0


async def test_records_that_do_not_differ_are_compared_again_in_small_pieces(
    platform: TracingPlatform, start: Start, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("wayline.tracing.upkeep.drift.AGAIN_RECORDS", 2)
    for number in range(3):
        await Log(platform.bus, job_id=f"j{number}").whole()
    service = await start(NEVER_CHECKING)
    await platform.wait_until_read()
    [check] = [part for part in service.parts if getattr(part, "_what", "") == "drift check"]
    tables = check._do.__self__._tables  # type: ignore[attr-defined]
    read: list[int] = []
    walk = DriftCheck._walk

    async def noted(self: DriftCheck, after: int, upto: int, *, most: int) -> tuple[int, int]:
        read.append(after)
        return await walk(self, after, upto, most=most)

    monkeypatch.setattr(DriftCheck, "_walk", noted)

    await check._do()  # type: ignore[attr-defined]
    first = await tables.drift_places()
    await check._do()  # type: ignore[attr-defined]
    second = await tables.drift_places()

    assert first["new"] == second["new"] >= 18
    assert (first["again"], second["again"]) == (2, 4)
    assert read == [0, 2], "what the process has stored itself is not read as new"
