"""From an upload over HTTP to the provider's wire: jobs are given images and files, byte for byte, and pay for them."""

from __future__ import annotations

import asyncio
import base64
import os
from dataclasses import dataclass
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx2
import orjson
import pytest

from wayline.contracts import events as e
from wayline.contracts.agents import Agent, AgentConfig, PutAgent
from wayline.contracts.errors import Reject
from wayline.contracts.jobs import JobView
from wayline.contracts.knowledge import PIECE_MAX_BYTES, AttachmentList, DescribeAttachments, IndexDocument
from wayline.contracts.tenants import CreateTenant, Tenant
from wayline.executor.adapters.attachments import Attachments
from wayline.executor.settings import Settings as ExecutorSettings
from wayline.gateway.settings import Settings as GatewaySettings
from wayline.llm import File
from wayline.router.settings import Settings as RouterSettings
from wayline.simulator import Asked, Fault, Say, Simulator, rounds
from wayline.testkit import Platform, until
from wayline.testkit.media import pdf, png
from wayline.testkit.office_files import docx, eml
from wayline.testkit.service_starts import finish_command
from wayline.testkit.walks import cases

from .four_models import BLIND, CLAUDE, FACTS, FOUR, GPT, OWN, endpoints, put_own

IMAGE, PDF = png(640, 480), pdf("The cat is on page one.", "The dog is on page two.")
COMMAND_WITHIN_S = 60.0
LOOK = Say(tools=(("get_current_time", {}),))
SERVICES = ("gateway", "router", "retrieval", "tool_registry")


@dataclass
class FileJobs:
    """Jobs that are given files: the platform, the simulated providers, and an HTTP client that uploads."""

    platform: Platform
    simulator: Simulator
    http: httpx2.AsyncClient

    async def upload(self, document_id: str, name: str, content: bytes) -> dict[str, Any]:
        """Add a file and wait until it is ready."""
        response = await self.http.post(
            "/v1/documents", params={"wait": 20}, data={"document_id": document_id}, files={"file": (name, content)}
        )
        if response.status_code == 202:
            # The first file waits for its reader to be started, on a busy machine for longer than an upload may.
            return await until(lambda: self._read(document_id), within=60, why=f"{name} is read")
        assert response.status_code == 200, response.text
        return response.json()

    async def _read(self, document_id: str) -> dict[str, Any] | None:
        document = (await self.http.get(f"/v1/documents/{document_id}")).json()
        return document if document["status"] == "ready" else None

    async def run(self, job_id: str, *parts: dict[str, Any], agent: str = "looker", **options: Any) -> JobView:
        await self.submit(job_id, *parts, agent=agent, **options)
        return await self.platform.wait_for(job_id)

    async def run_from_the_bus(
        self, job_id: str, *parts: dict[str, Any], agent: str = "looker", **options: Any
    ) -> JobView:
        """Run a job that only the router looks at before it is accepted."""
        body = {"agent": agent, "input": [text("What is it?"), *parts], "job_id": job_id, "options": options}
        await self.platform.publish(body)
        return await self.platform.wait_for(job_id)

    async def submit(self, job_id: str, *parts: dict[str, Any], agent: str = "looker", **options: Any) -> None:
        body = {"agent": agent, "input": [text("What is it?"), *parts], "job_id": job_id, "options": options}
        response = await self.http.post("/v1/jobs", json=body)
        assert response.status_code == 202, response.text

    async def agent(self, name: str = "looker", **config: Any) -> httpx2.Response:
        return await self.http.put(
            f"/v1/agents/{name}", json={"instructions": "Look.", "tools": ["get_current_time"], **config}
        )

    async def executor(self, **settings: Any) -> None:
        await self.platform.start("executor", executor=ExecutorSettings(**endpoints(self.simulator), **settings))

    def sent(self, job_id: str) -> list[list[bytes]]:
        """The images and files in each of a job's requests, as the provider got them."""
        asked = [each for each in self.simulator.requests if each.attempt.startswith(f"default/{job_id}/")]
        return [[*files_in(each.body)] for each in asked]

    def billed(self, job_id: str) -> Decimal:
        charges = (charge for charge in self.simulator.bill.charges if charge.attempt.startswith(f"default/{job_id}/"))
        return sum((charge.usd for charge in charges), Decimal(0))


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def image(document_id: str, **more: Any) -> dict[str, Any]:
    return {"type": "image", "document_id": document_id, **more}


def file(document_id: str, **more: Any) -> dict[str, Any]:
    return {"type": "file", "document_id": document_id, **more}


def files_in(value: Any) -> Any:
    """What is in a body in base64, whichever wire format has it."""
    if isinstance(value, dict):
        for key, held in value.items():
            if key == "data" or (isinstance(held, str) and held.startswith("data:")):
                yield base64.b64decode(held.rpartition(",")[2])
            else:
                yield from files_in(held)
    elif isinstance(value, list):
        for held in value:
            yield from files_in(held)


async def opened(platform: Platform, script: Any) -> FileJobs:
    simulator = await platform.simulate(script, models=FACTS)
    await platform.start(*SERVICES, router=RouterSettings(**endpoints(simulator)))
    await put_own(platform)
    jobs = FileJobs(platform, simulator, await platform.http())
    assert (await jobs.agent()).status_code == 200
    return jobs


@pytest.fixture
async def jobs(platform: Platform) -> FileJobs:
    return await opened(platform, rounds(LOOK, Say(text="A cat and a dog.")))


async def test_an_image_and_a_pdf_reach_each_provider_byte_for_byte(jobs: FileJobs):
    await jobs.executor()
    cat = await jobs.upload("cat", "cat.png", IMAGE)
    story = await jobs.upload("story", "story.pdf", PDF)
    assert (cat["width"], cat["height"], story["pages"]) == (640, 480, 2)

    for number, model in enumerate(FOUR):
        await reaches_byte_for_byte(jobs, f"j{number}", model)


async def reaches_byte_for_byte(jobs: FileJobs, job_id: str, model: str) -> None:
    ended = await jobs.run(job_id, image("cat"), file("story"), model=model, budget_usd="1")

    ends = (ended.status, ended.answer, ended.error, ended.steps)
    assert ends == ("completed", "A cat and a dog.", None, 2), model
    assert jobs.sent(job_id) == [[IMAGE, PDF], [IMAGE, PDF]], model
    assert ended.cost_usd == jobs.billed(job_id) > 0, model

    events = await jobs.platform.events(job_id)
    asked = [event for event in events if isinstance(event, e.ModelRequested)]
    answered = [event for event in events if isinstance(event, e.ModelCompleted)]
    for before, after in zip(asked, answered, strict=True):
        assert before.worst_usd is not None and after.cost_usd is not None and before.worst_usd >= after.cost_usd
    assert [event.cache_break for event in asked] == [None, None]
    [routed] = [event for event in events if isinstance(event, e.JobRouted)]
    assert {each.document_id: each.sha256 for each in routed.attachments} == {
        "cat": sha256(IMAGE).hexdigest(),
        "story": sha256(PDF).hexdigest(),
    }
    log = b"".join(orjson.dumps(event.model_dump(mode="json")) for event in events)
    assert base64.b64encode(IMAGE)[:40] not in log and base64.b64encode(PDF)[:40] not in log


@pytest.mark.parametrize("model", cases([CLAUDE, GPT, OWN]))
async def test_pinned_documents_follow_the_instructions_in_every_job_and_stay_cached(jobs: FileJobs, model: str):
    await jobs.executor()
    await jobs.upload("story", "story.pdf", PDF)
    await jobs.upload("map", "map.png", IMAGE)
    saved = await jobs.agent("guide", pinned=[file("story"), image("map"), text("The map is of our office.")])
    assert [part.get("sha256") for part in saved.json()["config"]["pinned"]] == [
        *(sha256(content).hexdigest() for content in (PDF, IMAGE)),
        None,
    ]

    options = {"model": model, "budget_usd": "1"}
    ended = [await jobs.run(f"j{n}", agent="guide", **options) for n in (1, 2)]

    assert [job.status for job in ended] == ["completed", "completed"]
    assert jobs.sent("j1") == jobs.sent("j2") == [[PDF, IMAGE]] * 2
    for number, job in enumerate(ended, 1):
        assert job.cost_usd == jobs.billed(f"j{number}") > 0
    firsts = [each for each in jobs.simulator.bill.charges if each.attempt.endswith("/1/m1")]
    if model != OWN:
        # The second job's first call reads what the first one's wrote, to the end of what is pinned.
        assert firsts[0].usage.cache_read == 0 and firsts[1].usage.cache_read > 2 * 2_350
        assert ended[1].cost_usd < ended[0].cost_usd
    content = conversation(jobs.simulator.requests[0])
    kinds = [next(kind for kind in ("document", "file", "image") if kind in part["type"]) for part in content[:2]]
    assert kinds in (["document", "image"], ["file", "image"])
    assert content[2]["text"] == "The map is of our office."
    assert content[3]["text"].startswith("What is it?")


def conversation(asked: Asked) -> list[dict[str, Any]]:
    """All that the user says in a request, part by part."""
    messages = asked.body.get("messages") or asked.body["input"]
    contents = [message["content"] for message in messages if message.get("role") == "user"]
    return [part for c in contents for part in ([text(c)] if isinstance(c, str) else c)]


async def test_an_agent_keeps_its_pinned_documents_bytes_as_saved(jobs: FileJobs):
    await jobs.executor()
    await jobs.upload("map", "map.png", IMAGE)
    await jobs.agent("guide", pinned=[image("map")])
    await jobs.upload("map", "map.png", png(8, 8))

    refused = await jobs.run_from_the_bus("j1", agent="guide", model=CLAUDE)
    saved = await jobs.agent("guide", pinned=[image("map")])
    taken = await jobs.run("j2", agent="guide", model=CLAUDE)

    assert (refused.status, refused.error.code, jobs.sent("j1")) == ("failed", "document_changed", [])
    assert saved.json()["version"] == 2
    assert (taken.status, jobs.sent("j2")) == ("completed", [[png(8, 8)]] * 2)


async def test_an_agent_cannot_pin_what_is_not_there(jobs: FileJobs):
    response = await jobs.agent("guide", pinned=[image("nowhere")])

    assert (response.status_code, response.json()["code"]) == (404, "unknown_document")


async def test_a_document_changed_after_routing_fails_its_job(
    jobs: FileJobs,
):
    await jobs.upload("cat", "cat.png", IMAGE)
    await jobs.upload("dog", "dog.png", png(9, 9))
    for job_id, named in (("j1", "cat"), ("j2", "dog")):
        await jobs.submit(job_id, image(named), model=CLAUDE)
        await jobs.platform.wait_until(job_id, lambda job: job.routing.route is not None, "it is routed")
    await jobs.upload("cat", "cat.png", png(10, 10))
    assert (await jobs.http.delete("/v1/documents/dog")).status_code == 200

    await jobs.executor()
    changed, gone = await jobs.platform.wait_for("j1"), await jobs.platform.wait_for("j2")

    assert (changed.status, changed.error.code) == ("failed", "document_changed")
    assert (gone.status, gone.error.code) == ("failed", "unknown_document")
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


async def test_a_cached_file_is_read_once_and_refused_after_deletion(jobs: FileJobs):
    content = png(1_200, 1_200) + bytes(range(256)) * 2_000
    await jobs.upload("cat", "cat.png", content)
    known = await jobs.platform.bus.ask(DescribeAttachments(tenant="default", document_ids=("cat",)), AttachmentList)
    pieces: list[int] = []

    async def hear(message: Any) -> None:
        pieces.append(orjson.loads(message.data)["length"])

    await jobs.platform.bus.nc.subscribe("documents.read.default", cb=hear)
    files = Attachments(jobs.platform.bus)
    read = await asyncio.gather(*(files.of("default", known.attachments) for _ in range(3)))

    assert [each["cat"] for each in read] == [File("cat.png", "image/png", base64.b64encode(content).decode())] * 3
    assert len({id(each["cat"].content) for each in read}) == 1
    # Once piece by piece, then two looks at whether it is still there.
    assert pieces == [PIECE_MAX_BYTES] * -(-len(content) // PIECE_MAX_BYTES) + [0, 0]
    assert (await jobs.http.delete("/v1/documents/cat")).status_code == 200
    with pytest.raises(Reject) as gone:
        await files.of("default", known.attachments)
    assert gone.value.code == "unknown_document"
    assert await files.of("default", known.attachments, again=True) == read[0], "who has it goes on with it"


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


async def test_the_command_line_uploads_what_a_job_is_given(jobs: FileJobs, tmp_path: Path):
    await jobs.executor()
    (tmp_path / "cat.png").write_bytes(IMAGE)
    (tmp_path / "broken.png").write_bytes(b"no image")
    (tmp_path / "note.txt").write_text("The cat is called Tom.")

    done = await command(jobs, tmp_path, "--file", "cat.png", "--file", "note.txt")
    again = await command(jobs, tmp_path, "--file", "cat.png")
    broken = await command(jobs, tmp_path, "--file", "broken.png")

    job = orjson.loads(done[0])
    assert (job["status"], job["answer"]) == ("completed", "A cat and a dog.")
    assert jobs.sent(job["job_id"]) == [[IMAGE]] * 2
    assert "The cat is called Tom." in str(jobs.simulator.requests[0].body)
    assert orjson.loads(again[0])["status"] == "completed"
    documents = (await jobs.http.get("/v1/documents")).json()["documents"]
    assert sorted(document["name"] for document in documents) == ["broken.png", "cat.png", "note.txt"]
    assert "no image in PNG" in str(broken)


async def command(jobs: FileJobs, directory: Path, *arguments: str) -> tuple[str, str]:
    """`wayline run` as somebody types it."""
    words = ("run", "--json", "--agent", "looker", "--model", CLAUDE, *arguments, "What is it?")
    env = {**os.environ, "WAYLINE_URL": str(jobs.http.base_url)}
    ran = await asyncio.to_thread(finish_command, *words, cwd=directory, env=env, stdin="", within_s=COMMAND_WITHIN_S)
    return ran.stdout, ran.stderr


async def test_office_files_reach_a_model_as_text(jobs: FileJobs):
    """Also one that takes no files; an answer is paid, and what a mail says is a stranger's."""
    await jobs.executor()
    report, mail = docx("The tide is high."), eml("The ebb is low.")
    await jobs.upload("report", "report.docx", report)
    await jobs.upload("mail", "mail.eml", mail)
    parts = [file("report", sha256=sha256(report).hexdigest()), file("mail")]
    assert (await jobs.agent("pinner", pinned=[file("report")])).status_code == 200
    await jobs.http.post("/v1/documents/report/reindex")
    await jobs.platform.wait_until_empty("INDEX")

    ended = [await jobs.run(f"j{n}", *parts, model=model) for n, model in enumerate((CLAUDE, BLIND))]
    pinned = await jobs.run("j9", agent="pinner", model=CLAUDE)

    assert [one.status for one in (*ended, pinned)] == ["completed"] * 3
    for number in range(2):
        first = next(one for one in jobs.simulator.requests if one.attempt.startswith(f"default/j{number}/"))
        assert "[FILE report.docx]\nThe tide is high." in first.text
        assert "the file 'mail.eml': data from strangers" in first.text and "The ebb is low." in first.text
        assert (await jobs.platform.job(f"j{number}")).tools.tainted_by == "mail.eml"
    assert any("The tide is high." in one.text for one in jobs.simulator.requests if "/j9/" in one.attempt)


CANNOT_WORK: tuple[tuple[list[dict[str, Any]], dict[str, Any], str, str], ...] = (
    ([image("nowhere")], {"model": CLAUDE}, "unknown_document", "POST /v1/documents"),
    ([image("no\0where")], {"model": CLAUDE}, "unknown_document", "POST /v1/documents"),
    ([image("theirs")], {"model": CLAUDE}, "unknown_document", "no document 'theirs'"),
    ([image("cat", sha256="0" * 64)], {"model": CLAUDE}, "document_changed", "other content"),
    ([image("cat")], {"model": BLIND}, "model_unfit", "takes no images, and cat.png is one"),
    ([file("story")], {"model": BLIND}, "model_unfit", "story.pdf is a PDF"),
    ([image("wide")], {"model": CLAUDE}, "model_unfit", "8000 pixels a side, and wide.png has 8001"),
    ([image(f"c{n}") for n in range(33)], {"model": CLAUDE}, "too_many_files", "WAYLINE_ROUTER_FILES_MAX"),
)


async def test_what_cannot_work_is_refused_before_anything_is_called(jobs: FileJobs):
    await jobs.executor()
    await jobs.upload("cat", "cat.png", IMAGE)
    await jobs.upload("story", "story.pdf", PDF)
    await jobs.upload("wide", "wide.png", png(8_001, 1))
    theirs = IndexDocument(
        tenant="acme", document_id="theirs", name="theirs", media_type="image/png", content_base64=encoded(IMAGE)
    )
    await jobs.platform.bus.publish(theirs, msg_id="theirs")
    await jobs.platform.wait_until_empty("INDEX")

    for number, (parts, options, code, says) in enumerate(CANNOT_WORK):
        ended = await jobs.run_from_the_bus(f"j{number}", *parts, **options)
        answers = [
            await jobs.http.post(
                "/v1/jobs", json={"agent": "looker", "input": parts, "options": {**options, "dry_run": dry_run}}
            )
            for dry_run in (True, False)
        ]

        assert (ended.status, ended.error and ended.error.code, ended.cost_usd) == ("failed", code, 0), says
        assert says in ended.error.message
        for answer in answers:
            assert (answer.status_code in (404, 409, 422), answer.json()["code"]) == (True, code), says
    assert jobs.simulator.requests == []


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


async def test_an_unknown_model_gets_no_image_but_advice(jobs: FileJobs):
    await jobs.executor()
    await jobs.upload("cat", "cat.png", IMAGE)

    ended = await jobs.run("j1", image("cat"), model="chat/stranger")

    assert (ended.status, ended.error.code, ended.cost_usd) == ("failed", "unsupported_input", 0)
    assert ended.error.message.startswith("chat/stranger takes no images: cat.png. To go on, use a model that takes it")
    assert jobs.simulator.requests == []


async def test_the_router_sends_an_image_where_it_can_be_seen(jobs: FileJobs):
    await jobs.executor()
    await jobs.upload("cat", "cat.png", IMAGE)
    await jobs.agent("chooser", routing={"primary": BLIND, "escalation": OWN})

    ended = await jobs.run("j1", image("cat"), agent="chooser", task_type="drafting")

    assert (ended.status, ended.route.name) == ("completed", OWN)
    assert "no model for" in ended.route.reason and "with images" in ended.route.reason


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
    await until(lambda: len(jobs.simulator.requests) == 1, within=20, why="the model is asked")
    doomed.kill()
    await fleet.start("executor")
    ended = await platform.wait_for("j1", within=40)

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

    assert (seen.status, seen.error.code) == ("failed", "model_unfit")
    assert "offline/extractive cannot take this job: it takes no images, and cat.png is one" in seen.error.message
    assert read.status == "completed" and "The dog is on page two." in (read.answer or "")
