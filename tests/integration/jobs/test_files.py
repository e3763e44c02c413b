"""From an upload over HTTP to the provider's wire: jobs are given images and files, byte for byte, and pay for them."""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
import pytest
import pytest_asyncio

from wayline.contracts import events as e
from wayline.contracts.errors import Reject
from wayline.contracts.knowledge import PIECE_MAX_BYTES, AttachmentList, DescribeAttachments, IndexDocument
from wayline.executor.adapters.attachments import Attachments
from wayline.llm import File
from wayline.router.settings import Settings as RouterSettings
from wayline.simulator import Asked
from wayline.testkit import Platform
from wayline.testkit.media import png
from wayline.testkit.office_files import docx, eml
from wayline.testkit.service_starts import finish_command
from wayline.testkit.walks import cases

from .conftest import http_with_key
from .ended_jobs import differences
from .file_jobs import IMAGE, LOOKS, PDF, SERVICES, FileJobs, file, image, text
from .four_models import BLIND, CLAUDE, FACTS, FOUR, GPT, OWN, endpoints, put_own

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

COMMAND_WITHIN_S = 60.0


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(module_platform: Platform) -> AsyncIterator[FileJobs]:
    """All services; the jobs of each test are those of a tenant of its own."""
    simulator = await module_platform.simulate(LOOKS, models=FACTS)
    await module_platform.start(*SERVICES, router=RouterSettings(**endpoints(simulator)))
    shared = FileJobs(module_platform, simulator, await module_platform.http())
    await shared.executor()
    yield shared
    assert await differences(module_platform.bus) == []


@pytest_asyncio.fixture(loop_scope="module")
async def jobs(shared: FileJobs) -> FileJobs:
    platform = await shared.platform.new_tenant()
    await put_own(platform)
    shared.simulator.play(LOOKS)
    jobs = FileJobs(platform, shared.simulator, await http_with_key(platform))
    assert (await jobs.agent()).status_code == 200
    return jobs


async def test_an_image_and_a_pdf_reach_each_provider_byte_for_byte(jobs: FileJobs):
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
        assert (ended[1].cost_usd or 0) < (ended[0].cost_usd or 0)
    content = conversation(jobs.requests()[0])
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
    await jobs.upload("map", "map.png", IMAGE)
    await jobs.agent("guide", pinned=[image("map")])
    await jobs.upload("map", "map.png", png(8, 8))

    refused = await jobs.run_from_the_bus("j1", agent="guide", model=CLAUDE)
    saved = await jobs.agent("guide", pinned=[image("map")])
    taken = await jobs.run("j2", agent="guide", model=CLAUDE)

    assert (refused.status, refused.error and refused.error.code, jobs.sent("j1")) == ("failed", "document_changed", [])
    assert saved.json()["version"] == 2
    assert (taken.status, jobs.sent("j2")) == ("completed", [[png(8, 8)]] * 2)


async def test_an_agent_cannot_pin_what_is_not_there(jobs: FileJobs):
    response = await jobs.agent("guide", pinned=[image("nowhere")])

    assert (response.status_code, response.json()["code"]) == (404, "unknown_document")


async def test_a_cached_file_is_read_once_and_refused_after_deletion(jobs: FileJobs):
    tenant = jobs.platform.tenant
    content = png(1_200, 1_200) + bytes(range(256)) * 2_000
    await jobs.upload("cat", "cat.png", content)
    known = await jobs.platform.bus.ask(DescribeAttachments(tenant=tenant, document_ids=("cat",)), AttachmentList)
    pieces: list[int] = []

    async def hear(message: Any) -> None:
        pieces.append(orjson.loads(message.data)["length"])

    await jobs.platform.bus.nc.subscribe(f"documents.read.{tenant}", cb=hear)
    files = Attachments(jobs.platform.bus)
    read = await asyncio.gather(*(files.of(tenant, known.attachments) for _ in range(3)))

    assert [each["cat"] for each in read] == [File("cat.png", "image/png", base64.b64encode(content).decode())] * 3
    assert len({id(each["cat"].content) for each in read}) == 1
    # Once piece by piece, then two looks at whether it is still there.
    assert pieces == [PIECE_MAX_BYTES] * -(-len(content) // PIECE_MAX_BYTES) + [0, 0]
    assert (await jobs.http.delete("/v1/documents/cat")).status_code == 200
    with pytest.raises(Reject) as gone:
        await files.of(tenant, known.attachments)
    assert gone.value.code == "unknown_document"
    assert await files.of(tenant, known.attachments, again=True) == read[0], "who has it goes on with it"


async def test_the_command_line_uploads_what_a_job_is_given(jobs: FileJobs, tmp_path: Path):
    (tmp_path / "cat.png").write_bytes(IMAGE)
    (tmp_path / "broken.png").write_bytes(b"no image")
    (tmp_path / "note.txt").write_text("The cat is called Tom.")

    done = await command(jobs, tmp_path, "--file", "cat.png", "--file", "note.txt")
    again = await command(jobs, tmp_path, "--file", "cat.png")
    broken = await command(jobs, tmp_path, "--file", "broken.png")

    job = orjson.loads(done[0])
    assert (job["status"], job["answer"]) == ("completed", "A cat and a dog.")
    assert jobs.sent(job["job_id"]) == [[IMAGE]] * 2
    assert "The cat is called Tom." in str(jobs.requests()[0].body)
    assert orjson.loads(again[0])["status"] == "completed"
    documents = (await jobs.http.get("/v1/documents")).json()["documents"]
    assert sorted(document["name"] for document in documents) == ["broken.png", "cat.png", "note.txt"]
    assert "no image in PNG" in str(broken)


async def command(jobs: FileJobs, directory: Path, *arguments: str) -> tuple[str, str]:
    """`wayline run` as somebody types it."""
    words = ("run", "--json", "--agent", "looker", "--model", CLAUDE, *arguments, "What is it?")
    key = jobs.http.headers["Authorization"].removeprefix("Bearer ")
    env = {**os.environ, "WAYLINE_URL": str(jobs.http.base_url), "WAYLINE_API_KEY": key}
    ran = await asyncio.to_thread(finish_command, *words, cwd=directory, env=env, stdin="", within_s=COMMAND_WITHIN_S)
    return ran.stdout, ran.stderr


async def test_office_files_reach_a_model_as_text(jobs: FileJobs):
    """Also one that takes no files; an answer is paid, and what a mail says is a stranger's."""
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
        first = next(one for one in jobs.requests() if one.attempt.startswith(f"{jobs.platform.tenant}/j{number}/"))
        assert "[FILE report.docx]\nThe tide is high." in first.text
        assert "the file 'mail.eml': data from strangers" in first.text and "The ebb is low." in first.text
        assert (await jobs.platform.job(f"j{number}")).tools.tainted_by == "mail.eml"
    assert any("The tide is high." in one.text for one in jobs.requests() if "/j9/" in one.attempt)


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
    await jobs.upload("cat", "cat.png", IMAGE)
    await jobs.upload("story", "story.pdf", PDF)
    await jobs.upload("wide", "wide.png", png(8_001, 1))
    theirs = IndexDocument(
        tenant="acme",
        document_id="theirs",
        name="theirs",
        media_type="image/png",
        content_base64=base64.b64encode(IMAGE).decode(),
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

        assert ended.error is not None
        assert (ended.status, ended.error.code, ended.cost_usd) == ("failed", code, 0), says
        assert says in ended.error.message
        for answer in answers:
            assert (answer.status_code in (404, 409, 422), answer.json()["code"]) == (True, code), says
    assert jobs.requests() == []


async def test_an_unknown_model_gets_no_image_but_advice(jobs: FileJobs):
    await jobs.upload("cat", "cat.png", IMAGE)

    ended = await jobs.run("j1", image("cat"), model="chat/stranger")

    assert ended.error is not None
    assert (ended.status, ended.error.code, ended.cost_usd) == ("failed", "unsupported_input", 0)
    assert ended.error.message.startswith("chat/stranger takes no images: cat.png. To go on, use a model that takes it")
    assert jobs.requests() == []


async def test_the_router_sends_an_image_where_it_can_be_seen(jobs: FileJobs):
    await jobs.upload("cat", "cat.png", IMAGE)
    await jobs.agent("chooser", routing={"primary": BLIND, "escalation": OWN})

    ended = await jobs.run("j1", image("cat"), agent="chooser", task_type="drafting")

    assert ended.route is not None
    assert (ended.status, ended.route.name) == ("completed", OWN)
    assert "no model for" in ended.route.reason and "with images" in ended.route.reason
