"""Documents through the console: added by its form, found, described anew, saved and deleted."""

from __future__ import annotations

import html
import re
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from wayline.testkit import until

from .conftest import AGENT, SAME_ORIGIN, Browser, Console, console_at

pytestmark = [pytest.mark.asyncio(loop_scope="module")]
ALSO = ("retrieval",)
PAYLOAD = "<img src=x onerror=alert(1)>\u202e.md"


async def add(
    browser: Browser, *files: tuple[str, bytes, str], headers: dict[str, str] | None = None, **fields: str
) -> httpx2.Response:
    """Send the form of new documents, as a browser does."""
    await browser.open("/knowledge/upload")
    found = re.search(r'name="token" value="([^"]+)"', browser.page)
    assert found is not None
    parts: list[tuple[str, Any]] = [("file", file) for file in files] or [("file", ("", b""))]
    answer = await browser.http.post(
        "/knowledge/upload",
        data={"token": found[1], **fields},
        files=parts,
        headers=SAME_ORIGIN | (headers or {}),
    )
    browser.page = answer.text
    return answer


async def send_job(browser: Browser, *files: tuple[str, bytes, str], **fields: str) -> httpx2.Response:
    """Send the form of a new job, as a browser does."""
    found = re.search(r'name="token" value="([^"]+)"', browser.page)
    assert found is not None
    parts: list[tuple[str, Any]] = [("file", file) for file in files] or [("file", ("", b""))]
    data = {"token": found[1], "agent": AGENT, "input": "What does tea cost?", **fields}
    answer = await browser.http.post("/jobs/new", data=data, files=parts, headers=SAME_ORIGIN)
    browser.page = answer.text or browser.page
    return answer


async def ready(console: Console, document_id: str) -> dict[str, Any]:
    """Return a document once it is ready or has failed."""

    async def ended() -> dict[str, Any] | None:
        found = (await console.api.get(f"/v1/documents/{document_id}")).json()
        return found if found["status"] in ("ready", "failed") else None

    found = await until(ended, why=f"{document_id} is indexed")
    assert found is not None
    return found


def ids_of(answer: httpx2.Response) -> list[str]:
    return parse_qs(urlsplit(answer.headers["location"]).query)["id"]


async def test_files_of_a_form_are_added_and_followed(console: Console):
    large = b"The moon pulls the sea.\n" * 100_000
    async with console.browser() as browser:
        answer = await add(
            browser,
            ("notes/tides.md", b"# Tides\n\nThe moon pulls the sea.", "text/markdown"),
            ("large.txt", large, "text/plain"),
            collection="sea",
            audience="ann\nbob",
        )
        assert answer.status_code == 303
        tides, other = ids_of(answer)
        await ready(console, tides)
        stored = await ready(console, other)
        followed = await browser.open(answer.headers["location"])
        listed = await browser.open("/knowledge?collection=sea&name=tides")
        file = await browser.open(f"/knowledge/file?id={other}")

    assert (stored["audience"], stored["collection"], stored["size_bytes"]) == (["ann", "bob"], "sea", len(large))
    assert stored["sha256"] == sha256(large).hexdigest() == sha256(file.content).hexdigest()
    assert (
        file.headers["content-disposition"].startswith("attachment")
        and "sandbox" in file.headers["content-security-policy"]
    )
    assert "notes/tides.md" in followed.text and "hx-trigger" not in followed.text
    assert "notes/tides.md" in listed.text and "large.txt" not in listed.text


async def test_what_is_refused_is_told_file_by_file(console: Console):
    async with console.browser() as browser:
        answer = await add(browser, ("empty.md", b"", "text/markdown"), ("whole.md", b"Whole.", "text/markdown"))
        told = await add(browser, ("empty.md", b"", "text/markdown"), headers={"accept": "application/json"})
        nothing = await add(browser)

    assert answer.status_code == 422
    [problem] = re.findall(r'role="alert">([^<]+)<', answer.text)
    assert problem.startswith("empty.md: ") and "whole.md" in answer.text
    assert told.json()["ids"] == [] and told.json()["refused"] == [problem]
    assert nothing.status_code == 422 and "choose files" in nothing.text


async def test_a_form_larger_than_a_document_may_be_is_refused(console: Console):
    async with (
        console_at(str(console.api.base_url), document_max_bytes=100_000) as url,
        console.browser(url) as browser,
    ):
        within = await add(browser, ("a.txt", b"a" * 90_000, "text/plain"))
        above = await add(browser, ("b.txt", b"b" * 110_000, "text/plain"))
        await browser.open("/jobs/new")

    assert (within.status_code, above.status_code) == (303, 413)


async def test_a_file_without_the_forms_token_is_not_taken(console: Console):
    async with console.browser() as browser:
        await browser.open("/knowledge/upload")
        answer = await browser.http.post(
            "/knowledge/upload", files={"file": ("forged.md", b"x")}, data={"token": "other"}, headers=SAME_ORIGIN
        )
    listed = (await console.api.get("/v1/documents", params={"name": "forged.md"})).json()

    assert (answer.status_code, listed["documents"]) == (403, [])


async def test_a_document_is_described_anew_unless_it_was_changed(console: Console):
    async with console.browser() as browser:
        [document_id] = ids_of(await add(browser, ("terms.md", b"Ten days.", "text/markdown")))
        await ready(console, document_id)
        page = (await browser.open(f"/knowledge/document?id={document_id}")).text
        [tag] = re.findall(r'name="tag" value="([^"]*)"', page)
        fields = {
            "tag": tag.replace("&#34;", '"'),
            "name": "terms of sale.md",
            "everybody": "on",
            "audience": "",
            "collection": "law",
            "valid_until": "2099-01-31T12:00",
            "trust": "untrusted",
            "metadata": '{"kind": "terms"}',
        }
        saved = await browser.send(f"/knowledge/document/change?id={document_id}", **fields)
        browser.page = page
        late = await browser.send(f"/knowledge/document/change?id={document_id}", **{**fields, "collection": "sea"})
        browser.page = page
        broken = await browser.send(f"/knowledge/document/change?id={document_id}", **{**fields, "metadata": "{"})
    now = (await console.api.get(f"/v1/documents/{document_id}")).json()

    assert saved.status_code == 303
    assert (now["name"], now["collection"], now["trust"]) == ("terms of sale.md", "law", "untrusted")
    assert (now["metadata"], now["valid_until"]) == ({"kind": "terms"}, "2099-01-31T12:00:00Z")
    assert late.status_code == 422 and 'value="sea"' in late.text
    assert broken.status_code == 422 and "Metadata: this is not JSON" in broken.text


async def test_a_document_is_deleted_once_that_is_confirmed(console: Console):
    async with console.browser() as browser:
        [document_id] = ids_of(await add(browser, (PAYLOAD, b"Ten days.", "text/markdown")))
        await ready(console, document_id)
        page = await browser.open(f"/knowledge/document?id={document_id}")
        again = await browser.send(f"/knowledge/document/reindex?id={document_id}")
        await ready(console, document_id)
        browser.page = page.text
        asked = await browser.send(f"/knowledge/document/delete?id={document_id}")
        there = await console.api.get(f"/v1/documents/{document_id}")
        deleted = await browser.send(f"/knowledge/document/delete?id={document_id}", confirmed="1")
        gone = await browser.open(f"/knowledge/document?id={document_id}")

    assert (again.status_code, asked.status_code, there.status_code) == (303, 200, 200)
    assert "passages (1) go" in asked.text
    assert not [html for html in (page.text, asked.text) if "<img" in html or "\u202e" in html]
    assert (deleted.headers["location"], gone.status_code) == ("/knowledge?done=deleted", 404)


async def test_a_search_finds_by_words_and_says_why(console: Console):
    async with console.browser() as browser:
        [document_id] = ids_of(await add(browser, ("zebra.md", b"A quokka smiles.", "text/markdown"), collection="zoo"))
        await ready(console, document_id)
        found = await browser.open("/knowledge/search?q=quokka&mode=keyword&collections=zoo")
        nothing = await browser.open("/knowledge/search?q=quokka&mode=keyword&collections=sea")
        refused = await browser.open("/knowledge/search?q=quokka&count=500")

    assert "A quokka smiles." in found.text and "rank 1" in found.text and "covers 100 %" in found.text
    assert "Nothing found" in nothing.text
    assert refused.status_code == 422 and 'role="alert"' in refused.text


async def test_a_file_of_a_new_job_is_uploaded_once(console: Console):
    async with console.browser() as browser:
        await browser.open("/jobs/new")
        planned = await send_job(browser, ("tea.md", b"Tea costs three.", "text/markdown"), preview="1")
        (given,) = re.findall(r'name="given" value="([^"]*)" checked', planned.text)
        sent = await send_job(browser, given=html.unescape(given))
        job_id = sent.headers["location"].removeprefix("/jobs/")
        empty = await send_job(browser, ("none.md", b"", "text/markdown"))

    job = (await console.api.get(f"/v1/jobs/{job_id}", params={"wait": 20})).json()
    assert "It would run on" in planned.text and sent.status_code == 303
    assert "tea.md" in job["input"] or "given_" in job["input"]
    assert empty.status_code == 422 and "none.md: " in empty.text
