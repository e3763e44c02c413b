"""Jobs keep to the bytes of their files whatever becomes of the services, and however many bytes these may hold."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx2
import pytest

from wayline.contracts.agents import Agent, AgentConfig, PutAgent
from wayline.contracts.tenants import CreateTenant, Tenant
from wayline.gateway.settings import Settings as GatewaySettings
from wayline.simulator import Asked, Fault, Say, Simulator
from wayline.testkit import Platform, until
from wayline.testkit.media import png

from .file_jobs import IMAGE, LOOKS, PDF, SERVICES, FileJobs, file, files_in, image, opened, text
from .four_models import CLAUDE


@pytest.fixture
async def jobs(platform: Platform) -> FileJobs:
    return await opened(platform, LOOKS)


async def test_a_document_changed_after_routing_fails_its_job(jobs: FileJobs):
    await jobs.upload("cat", "cat.png", IMAGE)
    await jobs.upload("dog", "dog.png", png(9, 9))
    for job_id, named in (("j1", "cat"), ("j2", "dog")):
        await jobs.submit(job_id, image(named), model=CLAUDE)
        await jobs.platform.wait_until(job_id, lambda job: job.routing.route is not None, "it is routed")
    await jobs.upload("cat", "cat.png", png(10, 10))
    assert (await jobs.http.delete("/v1/documents/dog")).status_code == 200

    await jobs.executor()
    changed, gone = await jobs.platform.wait_for("j1"), await jobs.platform.wait_for("j2")

    assert (changed.status, changed.error and changed.error.code) == ("failed", "document_changed")
    assert (gone.status, gone.error and gone.error.code) == ("failed", "unknown_document")
    assert (jobs.simulator.requests, changed.cost_usd, gone.cost_usd) == ([], 0, 0)


async def test_while_retrieval_is_away_jobs_that_name_documents_wait(jobs: FileJobs):
    await jobs.upload("cat", "cat.png", IMAGE)
    await jobs.submit("j1", image("cat"), model=CLAUDE)
    await jobs.platform.wait_until("j1", lambda job: job.routing.route is not None, "it is routed")
    await jobs.platform.stop("retrieval", 0.1)

    await jobs.executor()
    await jobs.submit("j2", image("cat"), model=CLAUDE)
    await jobs.submit("j3", model=CLAUDE)
    assert (await jobs.platform.wait_for("j3")).status == "completed"
    assert (await jobs.platform.job("j1")).life.ended is None and await jobs.platform.events("j2") == []
    await jobs.platform.start("retrieval")

    for job_id in ("j1", "j2"):
        assert (await jobs.platform.wait_for(job_id)).status == "completed"
        assert jobs.sent(job_id) == [[IMAGE], [IMAGE]]


async def test_while_retrieval_is_away_other_tenants_jobs_run(jobs: FileJobs, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("wayline.executor.adapters.attachments.AWAY_MAX_S", 0.2)
    monkeypatch.setattr("wayline.executor.adapters.attachments.AWAY_S", 2.0)
    await jobs.agent(model=CLAUDE)
    await jobs.upload("cat", "cat.png", IMAGE)
    platform, cat = jobs.platform, {"type": "image", "document_id": "cat"}
    await platform.bus.ask(CreateTenant(tenant="acme"), Tenant)
    plain = AgentConfig(model="offline/extractive", tools=())
    await platform.bus.ask(PutAgent(tenant="acme", name="plain", config=plain), Agent)
    # The first are queued for the executor, the others wait in the router.
    for n in range(6):
        await jobs.submit(f"queued{n}", cat)
    await platform.wait_until_empty("SUBMIT")
    await platform.stop("retrieval", 0.1)
    for n in range(40):
        await platform.publish({"agent": "looker", "input": [text("What is it?"), cat], "job_id": f"waits{n}"})

    await jobs.executor(interactive_slots=4)
    await platform.publish({"agent": "plain", "input": "hello", "job_id": "j1"}, tenant="acme")

    assert (await platform.wait_for("j1", tenant="acme")).status == "completed"
    await platform.start("retrieval")
    for job in (*(f"queued{n}" for n in range(6)), *(f"waits{n}" for n in range(40))):
        assert (await platform.wait_for(job, within=60)).status == "completed", job


async def test_an_uncached_file_is_read_again_with_the_same_bytes(jobs: FileJobs):
    await jobs.executor(files_cached_max_bytes=0)
    await jobs.upload("cat", "cat.png", IMAGE)
    await jobs.upload("story", "story.pdf", PDF)

    ended = await jobs.run("j1", image("cat"), file("story"), model=CLAUDE)

    assert (ended.status, jobs.sent("j1")) == ("completed", [[IMAGE, PDF], [IMAGE, PDF]])


async def test_calls_with_too_many_file_bytes_wait_for_each_other(platform: Platform):
    go = asyncio.Event()

    async def script(asked: Asked) -> Say:
        if [*files_in(asked.body)]:
            await go.wait()
        return Say(text="A cat.")

    jobs = await opened(platform, script)
    await jobs.executor(files_sent_max_bytes=1)
    await jobs.upload("cat", "cat.png", IMAGE)
    await jobs.submit("sends", image("cat"), model=CLAUDE)
    await until(lambda: len(jobs.simulator.requests) == 1, why="one image is on its way")
    await jobs.submit("waits", image("cat"), model=CLAUDE)
    await jobs.submit("stops", image("cat"), model=CLAUDE)

    assert (await jobs.run("words", model=CLAUDE)).status == "completed"
    assert (await jobs.http.post("/v1/jobs/stops/cancel")).status_code == 202
    assert (await platform.wait_for("stops")).status == "cancelled"
    assert jobs.sent("waits") == jobs.sent("stops") == []
    go.set()

    for job_id in ("sends", "waits"):
        assert (await platform.wait_for(job_id)).status == "completed"
        assert jobs.sent(job_id) == [[IMAGE]]


async def test_after_kill_9_the_next_holder_sends_the_same_bytes(platform: Platform, tmp_path: Path):
    def script(asked: Asked) -> Say:
        # The first answer never ends: its executor is killed in it.
        return Say(text="A dog.", fault=Fault(hold=asyncio.Event())) if asked.attempt.endswith("/m1") else Say("A cat.")

    jobs = await opened(platform, script)
    await jobs.upload("cat", "cat.png", IMAGE)
    fleet = await platform.make_fleet(tmp_path)
    fleet.set("executor", ANTHROPIC_BASE_URL=jobs.simulator.url)
    doomed = await fleet.start("executor")
    await jobs.submit("j1", image("cat"), model=CLAUDE)
    await until(lambda: len(jobs.simulator.requests) == 1, why="the model is asked")
    doomed.kill()
    await fleet.start("executor")
    ended = await platform.wait_for("j1")

    assert (ended.status, ended.answer) == ("completed", "A cat.")
    assert jobs.sent("j1") == [[IMAGE], [IMAGE]]


async def test_the_offline_model_refuses_an_image_and_searches_a_pdf(platform: Platform):
    await platform.start(*SERVICES, "executor", gateway=GatewaySettings(http_port=0))
    async with (
        Simulator() as simulator,
        httpx2.AsyncClient(base_url=f"http://127.0.0.1:{platform.http_port}", timeout=60) as http,
    ):
        jobs = FileJobs(platform, simulator, http)
        await jobs.upload("cat", "cat.png", IMAGE)
        await jobs.upload("story", "story.pdf", PDF)

        seen = await jobs.run_from_the_bus("j1", image("cat"), agent="assistant")
        await jobs.submit("j2", text("Where is the dog?"), file("story"), agent="assistant")
        read = await jobs.platform.wait_for("j2")

    assert seen.error is not None
    assert (seen.status, seen.error.code) == ("failed", "model_unfit")
    assert "offline/extractive cannot take this job: it takes no images, and cat.png is one" in seen.error.message
    assert read.status == "completed" and "The dog is on page two." in (read.answer or "")
