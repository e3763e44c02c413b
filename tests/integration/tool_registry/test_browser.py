"""Pages whose text their scripts make, in a real browser behind the guarded proxy."""

from __future__ import annotations

import json
import os
import shutil
import sys

import pytest

from wayline.guarded_http import AddressPolicy
from wayline.simulator.website import Page, Website
from wayline.tool_registry.programs.jails import JailLimits, Jails, user_of
from wayline.tool_registry.web.pages.browser import Browser, CannotRender

CHROMIUM = shutil.which("chromium")
COMMAND = ["chromium", "--no-sandbox"] if os.geteuid() == 0 else ["chromium"]
in_browser = pytest.mark.skipif(CHROMIUM is None, reason="no `chromium` is installed")

APP = """<html><head><title>Tides</title></head><body><div id="app"></div><script>
fetch("/data").then(answer => answer.text()).then(text => { app.innerHTML = "<article><p>" + text + "</p></article>" })
</script></body></html>"""
NOSY = """<html><body><p id="found">nothing</p><script>
fetch("http://127.0.0.1:%d/secret", {mode: "no-cors"}).then(() => { found.innerText = "reached" })
  .catch(() => { found.innerText = "refused" })
</script></body></html>"""


def browser_for(*sites: Website, **more) -> Browser:
    """Return a browser that may reach these sites."""
    policy = AddressPolicy.of([f"127.0.0.1:{site.port}" for site in sites])
    return Browser(COMMAND, policy, **{"page_max_bytes": 1_000_000, "timeout_s": 60, **more})


@pytest.mark.slow
@in_browser
async def test_a_page_is_read_with_what_its_scripts_put_there():
    async with Website({"/app": Page(APP), "/data": Page("High water at noon.", media_type="text/plain")}) as site:
        document = await browser_for(site).render("t", site.url("/app"))

    assert b"<p>High water at noon.</p>" in document


@in_browser
async def test_a_script_does_not_reach_the_inside():
    async with Website({"/secret": Page("secret")}) as inside:
        async with Website({"/nosy": Page(NOSY % inside.port)}) as site:
            document = await browser_for(site).render("t", site.url("/nosy"))

    # The proxy answers a request that it refuses, so the script cannot tell; the inside was never asked.
    assert inside.seen == []
    assert b'id="found"' in document


@pytest.mark.slow
@in_browser
async def test_a_document_above_the_limit_is_refused():
    async with Website({"/big": Page("<script>document.write('x'.repeat(3000))</script>")}) as site:
        with pytest.raises(CannotRender, match="above 2000 bytes"):
            await browser_for(site, page_max_bytes=2_000).render("t", site.url("/big"))


@pytest.mark.slow
@in_browser
async def test_a_page_that_never_ends_is_given_up(tmp_path):
    async with Website({"/busy": Page("<script>while (true) {}</script>")}) as site:
        with pytest.raises(CannotRender, match="within 3 s"):
            await browser_for(site, timeout_s=3).render("t", site.url("/busy"))


@in_browser
async def test_web_fetch_reads_what_scripts_made(platform):
    async with Website({"/app": Page(APP), "/data": Page("High water at noon.", media_type="text/plain")}) as site:
        hosts = [f"127.0.0.1:{site.port}"]
        await platform.registry(web_allowed_hosts=hosts, web_browser=COMMAND, web_browser_timeout_s=60)
        reply = await platform.call(platform.ask("web_fetch", {"urls": [site.url("/app")]}))

    [read] = json.loads(reply.content)["results"]
    assert (read["title"], read["content"]) == ("Tides", "High water at noon.")


@pytest.mark.slow
async def test_web_fetch_says_why_a_scripted_page_has_no_text(platform):
    async with Website({"/app": Page(APP)}) as site:
        await platform.registry(web_allowed_hosts=[f"127.0.0.1:{site.port}"], web_browser=["no-such-browser"])
        reply = await platform.call(platform.ask("web_fetch", {"urls": [site.url("/app")]}))

    assert reply.status == "failed"
    assert "no-such-browser does not start" in reply.error.message


async def test_a_browser_that_is_not_there_is_named():
    browser = Browser(["no-such-browser"], AddressPolicy(), page_max_bytes=1_000, timeout_s=10)

    with pytest.raises(CannotRender, match="no-such-browser does not start"):
        await browser.render("t", "http://example.org/")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux isolates programs")
async def test_the_browser_runs_in_a_jail_with_limits(tmp_path, monkeypatch):
    tmp_path.chmod(0o755)
    (tmp_path / "secret").write_text("canary")
    # In place of a browser: it shows what one sees that a page has taken over.
    environments = "$(cat /proc/*/environ | grep -c canary)"
    shown = f"$(id -u) {environments} $(cat {tmp_path / 'secret'}) $(grep processes /proc/self/limits)"
    (tmp_path / "browser").write_text(f"#!/bin/sh\necho {shown}\n")
    (tmp_path / "browser").chmod(0o755)
    (tmp_path / "bin").mkdir()
    (tmp_path / "browser").rename(tmp_path / "bin/browser")
    monkeypatch.setenv("SECRET", "canary")
    limits = JailLimits(memory_mb=256, processes_max=99, cpu_s=60)
    more = {"page_max_bytes": 1_000, "timeout_s": 60, "jails": Jails(tmp_path / "programs"), "limits": limits}

    document = await Browser([str(tmp_path / "bin/browser")], AddressPolicy(), **more).render(
        "t", "http://example.org/"
    )

    user, found, *rest = document.split()
    assert (found, rest[:3]) == (b"0", [b"Max", b"processes", b"99"])
    assert os.geteuid() != 0 or int(user) == user_of("browser of t")


async def test_a_browser_that_fails_says_what_to_try():
    browser = Browser(["false"], AddressPolicy(), page_max_bytes=1_000, timeout_s=10)

    with pytest.raises(CannotRender, match="does it run by hand"):
        await browser.render("t", "http://example.org/")
