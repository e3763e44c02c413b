"""The console on the whole platform, as a browser without scripts uses it, and what its scripts are sent."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import httpx2
import pytest

from wayline.console.pages.job_files import FILES_MAX
from wayline.console.render.formats import exact_usd
from wayline.embedded import free_port
from wayline.simulator.chat_server import Say
from wayline.testkit import until

from .conftest import AGENT, SAME_ORIGIN, Console, console_at

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

PAYLOAD = "<img src=x onerror=alert(1)><script>alert(2)</script>\u202e[x](javascript:alert(3))"


def held() -> tuple[asyncio.Event, Say]:
    """Return a reply that stops after its first word, and what lets it go on."""
    release = asyncio.Event()
    return release, Say(text="One two three.", hold=release)


async def waits_for(console: Console, why: str) -> dict[str, Any]:
    """Return the job of this test once it is parked."""

    async def parked() -> dict[str, Any]:
        found = (await console.api.get("/v1/jobs", params={"status": "parked", "waiting_for": why})).json()["jobs"]
        return found[0] if found else {}

    return await until(parked, why=f"a job waits for {why}")


async def ended(console: Console, job_id: str) -> dict[str, Any]:
    """Return a job at its end."""

    async def at_end() -> dict[str, Any]:
        job = (await console.api.get(f"/v1/jobs/{job_id}")).json()
        return job if job["ended_at"] else {}

    return await until(at_end, why=f"{job_id} has ended")


async def test_every_page_shows_itself_and_names_its_policy(console: Console):
    job = await console.run()
    async with console.browser() as browser:
        pages = ["/", "/jobs", "/jobs/new", "/approvals", "/costs", "/kit", f"/jobs/{job['job_id']}"]
        pages += [f"/jobs/{job['job_id']}?view={view}" for view in ("trace", "events", "raw")]
        for path in pages:
            answer = await browser.open(path)
            assert answer.status_code == 200, path
            assert "default-src 'none'" in answer.headers["content-security-policy"]
            assert answer.headers["cache-control"] == "no-store"
        for address in re.findall(r'(?:href|src)="(/static/[^"]+)"', browser.page):
            file = await browser.open(address)
            assert (file.status_code, "immutable" in file.headers["cache-control"]) == (200, True)


async def test_a_jobs_figures_are_those_of_the_api(console: Console):
    console.answers("The **answer** is yes.")
    job = await console.run("Is it so?")
    async with console.browser() as browser:
        await browser.open(f"/jobs/{job['job_id']}")

    tokens = job["usage"]["input"] + job["usage"]["output"]
    assert f"<dd>{tokens:,}" in browser.page
    assert f'title="{exact_usd(job["total_cost_usd"])}"' in browser.page
    assert "<strong>answer</strong>" in browser.page


async def test_a_form_submits_a_job_and_leads_to_it(console: Console):
    async with console.browser() as browser:
        await browser.open("/jobs/new")
        planned = await browser.send("/jobs/new", agent=AGENT, input="Is it so?", preview="1")
        sent = await browser.send("/jobs/new", agent=AGENT, input="Is it so?", tags="team:billing")
        job = await ended(console, sent.headers["location"].rpartition("/")[2])

        async def listed() -> bool:
            return job["job_id"] in (await browser.open("/jobs?s=tag:team:billing")).text

        await until(listed, why="the list has the job")

    assert "It would run on chat/scripted" in planned.text
    assert (sent.status_code, job["answer"], job["tags"]) == (303, "Yes.", ["team:billing"])


async def test_what_the_api_refuses_is_said_on_the_form(console: Console):
    async with console.browser() as browser:
        await browser.open("/jobs/new")
        refused = await browser.send("/jobs/new", agent="nobody", input="Is it so?")

    assert refused.status_code == 422
    assert "nobody" in refused.text and 'role="alert"' in refused.text


async def test_more_files_than_a_job_takes_are_refused_at_once(console: Console):
    given = json.dumps({"name": "a.md", "type": "file", "document_id": "given_1", "sha256": "0" * 64})
    async with console.browser() as browser:
        await browser.open("/jobs/new")
        [token] = set(re.findall(r'name="token" value="([^"]+)"', browser.page))
        fields = {"token": token, "agent": AGENT, "input": "Is it so?", "given": given}
        new = [("file", (f"{n}.md", b"x")) for n in range(FILES_MAX)]
        refused = await browser.http.post("/jobs/new", data=fields, files=new, headers=SAME_ORIGIN)

    assert refused.status_code == 422 and f"at most {FILES_MAX} files" in refused.text
    assert refused.text.count('name="given"') == 1


async def test_a_call_is_approved_with_other_arguments(console: Console):
    await console.save("asker", tools=("get_current_time",), ask_tools={"get_current_time": "always"})
    console.answers(Say(tools=(("get_current_time", {"timezone": "UTC"}),)), "Done.")
    await console.api.post("/v1/jobs", json={"agent": "asker", "input": "What time is it?"})
    job = await waits_for(console, "approval")
    async with console.browser() as browser:
        await browser.open("/approvals")
        shown_page = browser.page
        [decide] = re.findall(rf'action="(/approvals/{job["job_id"]}/[^"]+)"', browser.page)
        shown = {"shown": json.dumps({"timezone": "UTC"}), "decision": "approve"}
        broken = await browser.send(decide, **shown, arguments="{")
        other = await browser.send(decide, **shown, hash="of another call")
        decided = await browser.send(decide, **shown, arguments='{"timezone": "Europe/Zurich"}')
        await ended(console, job["job_id"])
        await browser.open(f"/jobs/{job['job_id']}")

    assert "The agent&#39;s configuration wants a person to approve it." in shown_page
    assert (broken.status_code, "are not JSON" in broken.text) == (422, True)
    assert (other.status_code, 'role="alert"' in other.text) == (422, True)
    assert decided.headers["location"] == "/approvals?done=decided"
    assert "Europe/Zurich" in browser.page


async def test_a_running_job_streams_and_ends_as_a_fresh_page(console: Console):
    release, say = held()
    console.answers(say)
    sent = await console.api.post("/v1/jobs", json={"agent": AGENT, "input": "Tell me."})
    job_id, kinds, text, last = sent.json()["job_id"], [], "", "0"
    async with console.browser() as browser:
        page = await browser.open(f"/jobs/{job_id}")
        assert f'data-live="/jobs/{job_id}/live?after=' in page.text
        async with browser.http.stream("GET", f"/jobs/{job_id}/live", headers={"last-event-id": "0"}) as stream:
            kind = ""
            async for line in stream.aiter_lines():
                name, _, value = line.partition(": ")
                if name == "event":
                    kind = value
                    kinds.append(kind)
                elif name == "id":
                    last = value
                elif name == "data" and kind == "delta":
                    text += json.loads(value)["text"]
                elif name == "data" and json.loads(value).get("type") == "model.requested":
                    release.set()
        again = await browser.open(f"/jobs/{job_id}/live", **{"last-event-id": last})
        region = await browser.open(f"/jobs/{job_id}/region")
        fresh = await browser.open(f"/jobs/{job_id}")

    # The first word may have been said before the stream began.
    assert text.endswith("two three.")
    assert {"changed", "delta", "progress"} <= set(kinds)
    assert again.status_code == 204
    assert _without_ages(region.text).strip() in _without_ages(fresh.text)
    assert "data-live" not in fresh.text and 'data-ended="1"' in region.text


def _without_ages(html: str) -> str:
    return re.sub(r"<time[^>]*>[^<]*</time>", "", html)


async def test_a_running_job_is_cancelled(console: Console):
    release, say = held()
    console.answers(say)
    sent = await console.api.post("/v1/jobs", json={"agent": AGENT, "input": "Tell me."})
    job_id = sent.json()["job_id"]
    async with console.browser() as browser:
        await browser.open(f"/jobs/{job_id}")
        answer = await browser.send(f"/jobs/{job_id}/cancel", reason="not needed")
        job = await ended(console, job_id)
        release.set()
        late = await browser.open(f"/jobs/{job_id}?done=cancelled")
        refused = await browser.send(f"/jobs/{job_id}/cancel", reason="again")

    assert (answer.status_code, job["status"]) == (303, "cancelled")
    assert "The job was asked to stop." in late.text
    assert refused.status_code == 422 and 'role="alert"' in refused.text


async def test_a_job_is_judged(console: Console):
    job = await console.run()

    async def stored() -> bool:
        return (await console.api.get("/v1/jobs", params={"q": job["job_id"]})).json()["jobs"] != []

    await until(stored, why="tracing has the job")
    async with console.browser() as browser:
        await browser.open(f"/jobs/{job['job_id']}")
        answer = await browser.send(f"/jobs/{job['job_id']}/feedback", label="down", comment="Too short.")
    kept = (await console.api.get(f"/v1/jobs/{job['job_id']}/feedback")).json()

    assert answer.status_code == 303
    assert "Too short." in json.dumps(kept)


async def test_strangers_words_run_nothing_on_any_page(console: Console):
    console.answers(PAYLOAD)
    job = await console.run(PAYLOAD)
    async with console.browser() as browser:
        for path in ("/", "/jobs", f"/jobs/{job['job_id']}", f"/jobs/{job['job_id']}?view=events"):
            await browser.open(path)
            assert "<img" not in browser.page and "<script>" not in browser.page
            assert "javascript:alert" not in re.sub(r">[^<]*<", "><", browser.page)
            assert "\u202e" not in browser.page


async def test_a_request_for_another_host_is_refused(console: Console):
    async with console.browser() as browser:
        rebound = await browser.open("/", host="evil.example")
        named = await browser.open("/", host="localhost")

    assert (rebound.status_code, named.status_code) == (421, 200)


@pytest.mark.parametrize(
    "headers",
    [{"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"}, {"origin": "https://evil.example"}, {}],
    ids=["cross-site", "same-site", "other origin", "neither"],
)
async def test_a_form_of_another_site_changes_nothing(console: Console, headers: dict[str, str]):
    async with console.browser() as browser:
        await browser.open("/jobs/new")
        token = re.search(r'name="token" value="([^"]+)"', browser.page)
        assert token is not None
        fields = {"token": token[1], "agent": AGENT, "input": "stolen"}
        answer = await browser.http.post("/jobs/new", data=fields, headers=headers)

    assert answer.status_code == 403
    assert (await console.api.get("/v1/jobs", params={"q": "stolen"})).json()["jobs"] == []


@pytest.mark.parametrize("token", ["", "guessed", "é"])
async def test_a_form_without_its_sessions_token_changes_nothing(console: Console, token: str):
    async with console.browser() as browser:
        await browser.open("/jobs/new")
        answer = await browser.send("/jobs/new", token=token, agent=AGENT, input="forged")

    assert answer.status_code == 403
    assert (await console.api.get("/v1/jobs", params={"q": "forged"})).json()["jobs"] == []


@pytest.mark.parametrize("address", ["https://evil.example", "//evil.example", "/\\evil.example", "javascript:x"])
async def test_no_form_leads_to_another_host(console: Console, address: str):
    async with console.browser() as browser:
        await browser.open("/")
        answer = await browser.send("/theme", theme="dark", then=address)
        page = await browser.open("/")

    assert answer.headers["location"] == "/"
    assert 'data-theme="dark"' in page.text


@pytest.mark.parametrize(
    ("path", "status"),
    [("/nope", 404), ("/jobs/job_none", 404), ("/jobs/a%20b", 404), ("/static/000000000000/console.css", 404)],
)
async def test_what_is_not_there_says_so(console: Console, path: str, status: int):
    async with console.browser() as browser:
        answer = await browser.open(path)

    assert answer.status_code == status
    assert "There is no" in answer.text


async def test_a_gateway_that_is_away_is_said_in_words():
    async with console_at(f"http://127.0.0.1:{free_port()}") as url:
        async with httpx2.AsyncClient(base_url=url, trust_env=False) as http:
            answer = await http.get("/")
            form = await http.post("/sign-in", data={"key": "wl_some"}, headers=SAME_ORIGIN)

    assert (answer.status_code, form.status_code) == (503, 503)
    assert "nothing answers at" in answer.text


async def test_a_form_too_large_to_be_read_is_refused():
    fields = {f"field{number}": "x" * 1_000_000 for number in range(9)}
    async with console_at(f"http://127.0.0.1:{free_port()}") as url:
        async with httpx2.AsyncClient(base_url=url, trust_env=False) as http:
            answer = await http.post("/sign-in", data={"key": "wl_some", **fields}, headers=SAME_ORIGIN)

    assert answer.status_code == 413


async def test_a_budget_is_made_changed_and_deleted(console: Console):
    written = {"name": "team", "limit_usd": "5", "window": "day", "alerts": "50 90", "timezone": "UTC", "hard": "on"}
    async with console.browser() as browser:
        await browser.open("/new-budget")
        made = await browser.send("/new-budget", **written)
        await browser.open("/new-budget")
        again = await browser.send("/new-budget", **{**written, "limit_usd": "9"})
        await browser.open("/budgets/team")
        wrong = await browser.send("/budgets/team", **{**written, "alerts": "soon"})
        await browser.send("/budgets/team", **{**written, "limit_usd": "7"})
        shown = await browser.open("/costs")
        kept = (await console.api.get("/v1/budgets/team")).json()
        await browser.open("/budgets/team")
        asked = await browser.send("/budgets/team/delete")
        there = await console.api.get("/v1/budgets/team")
        gone = await browser.send("/budgets/team/delete", confirmed="1")

    assert made.headers["location"] == "/budgets/team?done=saved"
    assert gone.headers["location"] == "/costs?done=deleted"
    assert (again.status_code, wrong.status_code) == (422, 422)
    assert (kept["limit_usd"], kept["alerts"]) == ("7", ["0.5", "0.9"])
    assert "team" in shown.text and "Delete the budget" in asked.text
    assert (there.status_code, (await console.api.get("/v1/budgets/team")).status_code) == (200, 404)


async def test_costs_are_downloaded_as_the_page_shows_them(console: Console):
    await console.run()
    async with console.browser() as browser:
        page = await browser.open("/costs?by=agent&days=30")
        file = await browser.open("/costs.csv?by=agent&days=30")
        wrong = await browser.open("/costs?by=colour")

    assert "/costs.csv?by=agent&amp;days=30" in page.text
    assert (file.status_code, file.headers["content-type"]) == (200, "text/csv; charset=utf-8")
    assert file.text.startswith("agent,calls")
    assert wrong.status_code == 404


async def test_a_block_of_an_answer_is_a_card_and_a_file(console: Console):
    console.answers("So:\n\n```python\nprint(1)\n```\n\n```diff\n--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n```\n")
    job = await console.run()
    async with console.browser() as browser:
        page = (await browser.open(f"/jobs/{job['job_id']}")).text
        file = await browser.open(f"/jobs/{job['job_id']}/answer/code/1")
        none = await browser.open(f"/jobs/{job['job_id']}/answer/code/3")

    assert f'href="/jobs/{job["job_id"]}/answer/code/1"' in page and "diff-lines" in page
    assert (file.text, none.status_code) == ("print(1)\n", 404)
    assert file.headers["content-disposition"] == 'attachment; filename="answer-1.py"'
