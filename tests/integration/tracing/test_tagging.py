"""Labels that jobs get after their submission: found by them, kept by what comes, bounded."""

from __future__ import annotations

import asyncio

from wayline.contracts.job_tags import TaggedJobs, TagJobs
from wayline.contracts.traces import JobPage, ListJobs
from wayline.testkit import until
from wayline.tracing.rebuild import rebuild

from .conftest import Log, Start, TracingPlatform


async def tags_of(platform: TracingPlatform, *, tag: str | None = None) -> dict[str, tuple[str, ...]]:
    asked = ListJobs(tenant="acme", tags=() if tag is None else (tag,))
    return {job.job_id: job.tags for job in (await platform.bus.ask(asked, JobPage)).jobs}


async def test_later_tags_outlive_events_and_a_rebuild(platform: TracingPlatform, start: Start):
    service = await start()
    running, ended = Log(platform.bus, job_id="running"), Log(platform.bus, job_id="ended")
    for log in (running, ended):
        await log.append(log.submitted(tags=("team:a", "team:b")), log.routed())
    await ended.append(ended.claimed(), ended.asked_model(1))
    await ended.append(ended.model_answered(1, "because"), ended.completed())
    await platform.wait_until_read()
    jobs = ("running", "ended", "unknown")

    tagged = [
        await platform.bus.ask(TagJobs(tenant="acme", job_ids=jobs, add=("case:7",), remove=("team:a",)), TaggedJobs)
        for _ in range(2)
    ]
    await running.append(running.claimed(), running.asked_model(1))
    await running.append(running.model_answered(1, "because"), running.completed())
    await platform.wait_until_read()
    wanted = dict.fromkeys(("running", "ended"), ("case:7", "team:b"))
    kept = await tags_of(platform, tag="case:7")
    await rebuild(service.bus, platform.tables, spans_days=7)
    rebuilt = await tags_of(platform, tag="case:7")
    await platform.bus.ask(TagJobs(tenant="acme", job_ids=jobs, add=("team:a",), remove=("case:7",)), TaggedJobs)

    assert [set(one.job_ids) for one in tagged] == [{"running", "ended"}] * 2
    assert kept == rebuilt == wanted
    assert await tags_of(platform, tag="team:a") == dict.fromkeys(wanted, ("team:a", "team:b"))
    assert await tags_of(platform, tag="case:7") == {}


async def test_labels_given_while_a_job_is_rebuilt_are_kept(platform: TracingPlatform, start: Start):
    service = await start()
    log = Log(platform.bus)
    await log.whole()
    await platform.wait_until_read()
    person = await platform.store("tracing")
    sql = person.sql

    async def waits() -> bool:
        waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        async with person.system() as conn:
            return bool(await conn.fetch(waiting))

    async with person.tenant("acme") as conn:
        await conn.fetch(sql.lock_jobs, "acme", ["j1"])
        rebuilding = asyncio.create_task(rebuild(service.bus, platform.tables, spans_days=7))
        await until(waits, why="the rebuild waits for the job")
        await conn.fetch(sql.tag_jobs, "acme", ["j1"], ["case:7"], [], 16)
    await rebuilding

    assert await tags_of(platform) == {"j1": ("case:7",)}


async def test_what_was_never_a_jobs_label_leaves_no_trace(platform: TracingPlatform, start: Start):
    await start()
    log = Log(platform.bus)
    await log.append(log.submitted(tags=("team:a", "team:b")), log.routed())
    await platform.wait_until_read()

    async def tag(add: tuple[str, ...] = (), remove: tuple[str, ...] = ()) -> None:
        await platform.bus.ask(TagJobs(tenant="acme", job_ids=("j1",), add=add, remove=remove), TaggedJobs)

    for number in range(3):
        await tag(remove=(f"never:{number}",))
        await tag(add=(f"short:{number}",))
        await tag(remove=(f"short:{number}",))
    await tag(remove=("team:a", "team:b"))
    await tag(add=("team:b",))

    [row] = await platform.rows("SELECT tags, tags_added, tags_removed FROM jobs")
    assert row == {"tags": ["team:b"], "tags_added": [], "tags_removed": ["team:a"]}


async def test_a_job_takes_no_more_tags_than_allowed(platform: TracingPlatform, start: Start):
    await start()
    log = Log(platform.bus)
    await log.append(log.submitted(tags=tuple(f"n:{number}" for number in range(15))), log.routed())
    await platform.wait_until_read()

    one = await platform.bus.ask(TagJobs(tenant="acme", job_ids=("j1",), add=("a:1",)), TaggedJobs)
    two = await platform.bus.ask(TagJobs(tenant="acme", job_ids=("j1",), add=("a:2",)), TaggedJobs)

    assert (one.job_ids, two.job_ids) == (("j1",), ())
    assert len((await tags_of(platform))["j1"]) == 16
