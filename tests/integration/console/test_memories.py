"""What is remembered, through the console: added, changed, released, linked and forgotten."""

from __future__ import annotations

import re

import pytest

from wayline.contracts.memory import FactsSaved, NewFact, SaveMemories, WrittenBy

from .conftest import Console

pytestmark = [pytest.mark.asyncio(loop_scope="module")]
ALSO = ("retrieval",)


def tag_in(page: str) -> str:
    [tag] = re.findall(r'name="tag" value="([^"]*)"', page)
    return tag.replace("&#34;", '"')


def new(text: str, **more: str) -> dict[str, str]:
    return {"text": text, "category": "preference", "importance": "8", "tier": "core", "source": "user_noted", **more}


async def test_a_memory_is_added_changed_and_forgotten(console: Console):
    async with console.browser() as browser:
        await browser.open("/knowledge/memories")
        added = await browser.send(
            "/knowledge/memories", user="ann", **new("Drinks tea.", expires_at="2099-01-01T00:00")
        )
        address = added.headers["location"].partition("?")[0]
        page = (await browser.open(address)).text
        fields = {"text": "Drinks coffee.", "category": "preference", "tier": "core", "importance": "8"}
        fields |= {"confidence": "0.8", "keywords": "", "expires_at": "2099-01-01T00:00", "tag": tag_in(page)}
        changed = await browser.send(f"{address}/change", **fields, reason="asked again")
        browser.page = page
        late = await browser.send(f"{address}/change", **{**fields, "text": "Drinks water."})
        released = await browser.send(f"{address}/release", reason="it does not wait")
        listed = await browser.open("/knowledge/memories?user=ann&tier=core")
        await browser.open(address)
        asked = await browser.send(f"{address}/delete/forget")
        forgotten = await browser.send(f"{address}/delete/forget", confirmed="1")
        gone = await browser.open(address)

    assert (added.status_code, changed.status_code, late.status_code) == (303, 303, 422)
    assert released.status_code == 422 and 'role="alert"' in released.text
    assert "Drinks water." in late.text and 'role="alert"' in late.text
    assert "Drinks coffee." in listed.text and "Drinks tea." not in listed.text
    assert "2 versions" in asked.text and "Drinks coffee." in asked.text
    assert (forgotten.headers["location"], gone.status_code) == ("/knowledge/memories?done=forgotten", 404)


async def test_what_is_refused_is_told_and_keeps_what_was_typed(console: Console):
    async with console.browser() as browser:
        await browser.open("/knowledge/memories")
        refused = await browser.send("/knowledge/memories", **new("Drinks tea."), user="")
        unread = await browser.send("/knowledge/memories", **new("Drinks tea.", confidence="sure"), user="ann")
        above = await browser.send("/knowledge/memories", **new("Drinks tea.", confidence="7"), user="ann")

    assert [answer.status_code for answer in (refused, unread, above)] == [422] * 3
    assert all("Drinks tea.</textarea>" in answer.text for answer in (refused, unread, above))
    assert "a memory is about one" in refused.text and "Confidence: this is not a number" in unread.text


async def test_an_insight_and_its_subject_are_kept_together(console: Console):
    async with console.browser() as browser:
        await browser.open("/knowledge/subjects")
        made = await browser.send("/knowledge/subjects", type="client", id="acme", name="Acme")
        await browser.open("/knowledge/subjects")
        await browser.send("/knowledge/subjects", type="client", id="globex", name="Globex")
        await browser.open("/knowledge/subjects")
        twice = await browser.send("/knowledge/subjects", type="client", id="acme", name="Other")
        await browser.open("/knowledge/insights?type=client&subject=acme")
        fields = {"type": "client", "subject": "acme"}
        await browser.send("/knowledge/insights", **new("Loves sea views.") | fields)
        page = await browser.open("/knowledge/subject?type=client&id=acme")
        saved = await browser.send(
            "/knowledge/subject/change?type=client&id=acme",
            tag=tag_in(page.text), name="Acme Inc.", attributes='{"city": "Bonn"}', links="rival of client/globex",
        )  # fmt: skip
        browser.page = page.text
        late = await browser.send(
            "/knowledge/subject/change?type=client&id=acme", tag=tag_in(page.text), name="No", attributes="", links=""
        )
        browser.page = page.text
        asked = await browser.send("/knowledge/subject/delete?type=client&id=globex")
        deleted = await browser.send("/knowledge/subject/delete?type=client&id=globex", confirmed="1")
    now = (await console.api.get("/v1/subjects/client/acme")).json()

    assert (made.status_code, twice.status_code, saved.status_code, late.status_code) == (303, 422, 303, 422)
    assert "Loves sea views." in page.text
    assert (now["name"], now["attributes"]) == ("Acme Inc.", {"city": "Bonn"})
    assert "Delete client/globex?" in asked.text and deleted.status_code == 303


async def test_a_user_is_forgotten_with_a_receipt_once_confirmed(console: Console):
    await console.run(user_id="otto")
    async with console.browser() as browser:
        await browser.open("/knowledge/memories")
        await browser.send("/knowledge/memories", user="otto", **new("Keeps bees."))
        await browser.open("/knowledge/forget?user=otto")
        unnamed = await browser.send("/knowledge/forget", what="user", user="")
        asked = await browser.send("/knowledge/forget", what="user", user="otto")
        there = (await console.api.get("/v1/memories", params={"user_id": "otto"})).json()["facts"]
        begun = await browser.send("/knowledge/forget", what="user", user="otto", confirmed="1")
        address = begun.headers["location"]
        receipt = await browser.open(address)
        found = await browser.open(f"/knowledge/receipt?id={address.rpartition('/')[2]}")

    told = (await console.api.get(address.replace("/knowledge", "/v1"))).json()

    assert unnamed.status_code == 422 and len(there) == 1
    assert "Forget the user otto?" in asked.text and "1 memory" in asked.text
    assert (begun.status_code, found.headers["location"]) == (303, address)
    assert told["what"] == "user" and told["name_sha256"] in receipt.text


async def test_what_strangers_said_waits_until_it_is_released(console: Console):
    fact = NewFact(text="Wants all mails forwarded.", category="preference", confidence=0.9)
    written = WrittenBy(job_id="j1", tainted_by=("fetch_page",))
    asked = SaveMemories(tenant="default", key="j1/1", user_id="ben", facts=(fact,), written=written)
    [outcome] = (await console.platform.bus.ask(asked, FactsSaved)).outcomes
    async with console.browser() as browser:
        waiting = await browser.open("/knowledge/memories?state=quarantined")
        page = await browser.open(f"/knowledge/memories/{outcome.fact_id}")
        released = await browser.send(f"/knowledge/memories/{outcome.fact_id}/release", reason="Ben said so")
    now = (await console.api.get(f"/v1/memories/{outcome.fact_id}")).json()

    assert outcome.outcome == "quarantined" and "Wants all mails forwarded." in waiting.text
    assert "had read the words of strangers by fetch_page" in page.text
    assert (released.status_code, now["state"], now["trust"]) == (303, "active", "own")
