"""The built-in tool `web_fetch` on a real bus, against websites of the test's own on loopback."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio

from wayline.contracts.observation import observation, tool_state
from wayline.contracts.tools import ListTools, ToolList
from wayline.simulator.website import Page, ReceivedRequest, Website
from wayline.testkit.media import pdf
from wayline.testkit.walks import cases

from .conftest import RegistryPlatform

pytestmark = [pytest.mark.asyncio(loop_scope="module")]
alone = pytest.mark.asyncio(loop_scope="function")
"""For a test that starts and stops registries, or has its own settings."""

ROBOTS = Page("User-agent: *\nDisallow: /private\n", media_type="text/plain")
ARTICLE = "".join(
    f"<p>Paragraph {n} of the keeper, who counts the waves and the gulls and the ships.</p>" for n in range(200)
)
TIDES = Page(
    f"<html><head><title>Tides</title></head><body><article><h1>Tides</h1>{ARTICLE}"
    f"<p>Spring tides in Brest reach five metres.</p>{ARTICLE}</article></body></html>"
)
PDF = pdf("The neap tide is lower.")


def docx() -> bytes:
    namespace = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    text = "<w:p><w:r><w:t>A letter from Brest.</w:t></w:r></w:p>"
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("word/document.xml", f'<w:document xmlns:w="{namespace}"><w:body>{text}</w:body></w:document>')
    return file.getvalue()


@asynccontextmanager
async def website(**pages):
    async with Website({"/robots.txt": ROBOTS, **{f"/{name}": page for name, page in pages.items()}}) as site:
        yield site


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_registry(shared_platform: RegistryPlatform) -> RegistryPlatform:
    await shared_platform.registry(web_allowed_hosts=["127.0.0.1:*"], answer_within_s=20)
    return shared_platform


async def registry(platform, *sites: Website, **more):
    hosts = [f"127.0.0.1:{site.port}" for site in sites]
    return await platform.registry(web_allowed_hosts=hosts, **more)


async def fetch(platform, *urls: str, job: str = "j1", **more):
    return await platform.once(platform.ask("web_fetch", {"urls": list(urls), **more}, job=job), timeout_s=30)


async def test_a_listing_marks_web_fetch_as_strangers_words(shared):
    [tool] = (await shared.bus.ask(ListTools(tenant=shared.tenant, patterns=("web_*",)), ToolList)).tools

    assert (tool.name, tool.effect, tool.untrusted) == ("web_fetch", "read", True)


@alone
async def test_web_fetch_can_be_switched_off(platform):
    await platform.registry(web_fetch=False)

    listed = await platform.bus.ask(ListTools(tenant=platform.tenant, patterns=("web_*",)), ToolList)

    assert listed.tools == ()


async def test_the_passages_of_a_page_that_answer_are_returned(shared):
    async with website(tides=TIDES) as site:
        reply = await fetch(shared, site.url("/tides"), query="How high are spring tides in Brest?", detail="brief")

    assert reply.status == "success", reply.error
    result = json.loads(reply.content)
    [page] = result["results"]
    assert (result["fetched"], result["failed"], page["title"], page["url"]) == (1, 0, "Tides", site.url("/tides"))
    assert "Spring tides in Brest reach five metres." in page["content"]
    assert len(page["content"]) < 2_500
    assert site.seen[1].headers["user-agent"] == "Wayline/0.1"


async def test_each_page_has_its_own_outcome(shared):
    async with website(tides=TIDES, pdf=Page(PDF, media_type="application/pdf")) as site:
        urls = [site.url("/tides"), site.url("/pdf"), site.url("/gone")]
        reply = await fetch(shared, *urls)

    result = json.loads(reply.content)
    assert (result["fetched"], result["failed"]) == (2, 1)
    assert "The neap tide is lower." in result["results"][1]["content"]
    assert result["results"][2]["error"]["code"] == "bad_status"
    assert "404" in result["results"][2]["error"]["message"]
    assert tool_state("web_fetch") == "fetching_content"
    assert observation("web_fetch", {"urls": urls}, reply.content, failed=False) == "2 fetched, 1 failed"


async def test_an_address_asked_for_twice_is_observed_as_one_page(shared):
    async with website(tides=TIDES) as site:
        urls = [site.url("/tides"), site.url("/tides")]
        reply = await fetch(shared, *urls)

    assert observation("web_fetch", {"urls": urls}, reply.content, failed=False) == "1 fetched, 0 failed"


@pytest.mark.parametrize(
    "url", cases(["http://[::1", "http://exa\u2100mple.com/", "http://[foo", "", "http://a.example:x/"])
)
async def test_a_malformed_address_fails_alone(shared, url: str):
    async with website(tides=TIDES) as site:
        reply = await fetch(shared, url, site.url("/tides"))

    assert reply.status == "success", reply.error
    malformed, page = json.loads(reply.content)["results"]
    assert (malformed["url"], malformed["error"]["code"], page["title"]) == (url, "invalid_url", "Tides")


async def test_a_call_fails_only_when_all_pages_do(shared):
    async with website() as site:
        reply = await fetch(shared, site.url("/a"), site.url("/b"))

    assert reply.error is not None
    assert reply.error.code == "tool_failed"
    assert "/a: " in reply.error.message and "/b: " in reply.error.message


@pytest.mark.parametrize("media_type", ["application/vnd.openxmlformats-officedocument.wordprocessingml.document"])
async def test_a_docx_is_read(shared, media_type: str):
    async with website(letter=Page(docx(), media_type=media_type)) as site:
        reply = await fetch(shared, site.url("/letter"))

    assert json.loads(reply.content)["results"][0]["content"] == "A letter from Brest."


@alone
@pytest.mark.parametrize(
    "url",
    cases(
        [
            "http://127.0.0.1:4222/",
            "http://169.254.169.254/latest/meta-data/",
            "http://[::1]/",
            "http://localhost/",
            "http://2130706433/",
            "file:///etc/passwd",
            "http://user:secret@a.example/",
        ]
    ),
)
async def test_what_is_inside_is_not_fetched(platform, url: str):
    await platform.registry()

    reply = await fetch(platform, url)

    assert reply.error is not None
    assert reply.attempts == 1


@alone
async def test_a_redirect_to_the_inside_is_not_followed(platform):
    async with website(secret=Page("secret")) as inside, website() as site:
        site.pages["/start"] = Page(status=302, headers={"Location": inside.url("/secret")})
        await registry(platform, site)
        reply = await fetch(platform, site.url("/start"))

    assert reply.error is not None and "secret" not in reply.content
    assert inside.seen == []


@alone
async def test_robots_are_honoured_unless_switched_off(platform):
    async with website(**{"private": TIDES}) as site:
        first = await registry(platform, site, answer_within_s=20)
        refused = await fetch(platform, site.url("/private"))
        await first.stop()
        platform.running.clear()
        await registry(platform, site, answer_within_s=20, web_robots=False)
        fetched = await fetch(platform, site.url("/private"), job="j2")

    assert refused.error is not None and "robots.txt" in refused.error.message
    assert fetched.status == "success"
    assert site.paths == ["/robots.txt", "/private"]


async def test_a_page_that_is_refused_for_a_moment_is_tried_again(shared):
    answers = [Page("busy", status=429, headers={"Retry-After": "0"}), Page("no", status=403), TIDES]

    def busy(request: ReceivedRequest) -> Page:
        return answers.pop(0)

    async with website(tides=busy) as site:
        reply = await fetch(shared, site.url("/tides"))

    assert reply.status == "success"
    assert site.paths.count("/tides") == 3


async def test_a_page_that_is_not_there_is_not_tried_again(shared):
    async with website() as site:
        await fetch(shared, site.url("/gone"))

    assert site.paths.count("/gone") == 1


async def test_a_page_is_kept_for_its_tenant_alone(shared):
    async with website(tides=TIDES) as site:
        await fetch(shared, site.url("/tides"))
        await fetch(shared, site.url("/tides"), job="j2", query="another question")
        ours = site.paths.count("/tides")
        await fetch(shared.as_tenant(), site.url("/tides"))

    assert (ours, site.paths.count("/tides")) == (1, 2)


@alone
async def test_large_and_strange_pages_are_refused_with_a_reason(platform):
    bomb = Page(gzip.compress(b" " * 20_000_000), headers={"Content-Encoding": "gzip"})
    pages = {"bomb": bomb, "image": Page(b"\x89PNG", media_type="image/png"), "damaged": Page(b"%PDF-1.4 nothing")}
    async with website(**pages) as site:
        await registry(platform, site, answer_within_s=20, web_page_max_bytes=1_000_000)
        reply = await fetch(platform, *(site.url(f"/{name}") for name in pages))

    assert reply.error is not None
    for reason in ("larger than 1000000 bytes", "image/png", "damaged"):
        assert reason in reply.error.message


async def test_more_than_three_pages_are_refused_before_any_is_fetched(shared):
    reply = await fetch(shared, *(f"https://a.example/{n}" for n in range(4)))

    assert reply.error is not None
    assert reply.error.code == "invalid_arguments"
