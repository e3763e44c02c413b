"""The pages about agents on the whole platform: what their forms change is what the API has afterwards."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from wayline.testkit import until

from ...console_forms import Sent
from .conftest import Browser, Console

pytestmark = [pytest.mark.asyncio(loop_scope="module")]


async def agent(console: Console, name: str) -> dict[str, Any]:
    return (await console.api.get(f"/v1/agents/{name}")).json()


async def form_of(browser: Browser, path: str) -> dict[str, str]:
    """Return what the form of a page sends if nobody touches it."""
    await browser.open(path)
    fields = Sent(browser.page).fields
    return {name: value for name, value in fields.items() if name not in ("token", "theme", "then", "s", "")}


async def test_an_agent_is_made_checked_saved_and_changed(console: Console):
    async with console.browser() as browser:
        fields = await form_of(browser, "/new-agent") | {"name": "clerk", "model": "chat/scripted"}
        checked = await browser.send("/new-agent", **fields, check="1")
        unsaved = await console.api.get("/v1/agents/clerk")
        made = await browser.send("/new-agent", **fields, save="1")
        fields = await form_of(browser, "/agents/clerk")
        changed = await browser.send(
            "/agents/clerk", **{**fields, "max_steps": "9", "tool:get_current_time": "off", "style": "direct"}, save="1"
        )

    saved = await agent(console, "clerk")
    assert (checked.status_code, unsaved.status_code) == (200, 404)
    assert "It can be saved" in checked.text
    assert made.headers["location"] == changed.headers["location"] == "/agents/clerk?done=agent-saved"
    assert (saved["version"], saved["config"]["max_steps"], saved["config"]["style"]) == (2, 9, "direct")
    assert saved["config"]["tools_off"] == ["get_current_time"]
    assert "max_seconds" in saved["inherits"] and "max_steps" not in saved["inherits"]


async def test_a_form_that_is_overtaken_shows_both_and_saves_after_all(console: Console):
    await console.save("overtaken", instructions="Be brief.\nBe kind.")
    async with console.browser() as browser:
        fields = await form_of(browser, "/agents/overtaken") | {"instructions": "Be long.\nBe kind."}
        await console.save("overtaken", instructions="Be funny.\nBe kind.")
        refused = await browser.send("/agents/overtaken", **fields, save="1")
        again = Sent(browser.page).fields
        kept = await agent(console, "overtaken")
        await browser.send("/agents/overtaken", **fields | {"tag": again["tag"]}, save="1")

    assert refused.status_code == 422
    assert "Version 2 was saved after this form was opened" in refused.text
    assert re.findall(r'class="agents-(removed|added)">. (Be \w+)', refused.text) == [
        ("removed", "Be funny"),
        ("added", "Be long"),
    ]
    assert kept["config"]["instructions"].startswith("Be funny.")
    assert (await agent(console, "overtaken"))["config"]["instructions"].startswith("Be long.")


async def test_what_is_wrong_stands_at_its_field_and_saves_nothing(console: Console):
    await console.save("careful")
    async with console.browser() as browser:
        fields = await form_of(browser, "/agents/careful")
        unread = await browser.send("/agents/careful", **{**fields, "max_steps": "many"}, save="1")
        refused = await browser.send("/agents/careful", **{**fields, "temperature": "9"}, save="1")
        region = await browser.send("/agent-check", **{**fields, "temperature": "9"})

    assert (unread.status_code, refused.status_code, region.status_code) == (422, 422, 200)
    assert 'id="error-max_steps">this is not a whole number' in unread.text
    assert 'id="error-temperature">Input should be less' in refused.text
    assert "<html" not in region.text and "body.temperature" in region.text
    assert (await agent(console, "careful"))["version"] == 1


async def test_an_agent_is_given_its_rows_without_scripts(console: Console):
    await console.save("rowed")
    async with console.browser() as browser:
        fields = await form_of(browser, "/agents/rowed")
        typed = {"output_schema.0.name": "total", "output_schema.0.kind": "number", "output_schema.0.required": "on"}
        typed |= {"pinned.0.kind": "text", "pinned.0.text": "Terms.\nAll of them."}
        await browser.send("/agents/rowed", **fields | typed, check="1")
        roomier = Sent(browser.page).fields
        as_json = await browser.send("/agents/rowed", **fields | typed, **{"output_schema.next": "json"})
        unsaved = await agent(console, "rowed")
        saved = await browser.send("/agents/rowed", **fields | typed, save="1")

    schema = {"type": "object", "properties": {"total": {"type": "number"}}, "required": ["total"]}
    assert roomier["output_schema.0.name"] == "total" and "output_schema.2.name" in roomier
    assert roomier["pinned.0.text"] == "Terms.\nAll of them." and "pinned.2.kind" in roomier
    assert json.loads(Sent(as_json.text).fields["output_schema"]) == schema
    assert (unsaved["version"], saved.headers["location"]) == (1, "/agents/rowed?done=agent-saved")
    config = (await agent(console, "rowed"))["config"]
    assert (config["output_schema"], config["pinned"]) == (schema, [{"type": "text", "text": "Terms.\nAll of them."}])


async def test_no_new_agent_takes_the_place_of_another(console: Console):
    await console.save("taken")
    async with console.browser() as browser:
        fields = await form_of(browser, "/new-agent?copy_of=taken") | {"name": "taken"}
        refused = await browser.send("/new-agent", **fields, save="1")
        unnamed = await browser.send("/new-agent", **{**fields, "name": "../keys"}, save="1")

    assert refused.status_code == 422 and "choose another name" in refused.text
    assert unnamed.status_code == 422
    assert (await agent(console, "taken"))["version"] == 1


async def test_versions_show_their_difference_and_one_is_returned_to(console: Console):
    await console.save("turning", instructions="First.")
    await console.run(agent="turning")
    await console.save("turning", instructions="Second.")
    async with console.browser() as browser:

        async def counted() -> bool:
            return 'class="number">1</td><td class="number">0</td>' in (
                await browser.open("/agents/turning/versions")
            ).text.replace("\n", "")

        await until(counted, why="tracing has the job of version 1")
        shown = browser.page
        await browser.send("/agents/turning/return", version="1", number="1")
        overtaken = await agent(console, "turning")
        await browser.open("/agents/turning/versions")
        await browser.send("/agents/turning/return", version="2", number="1")

    assert "First." in shown and "Second." in shown and "Return to version 1" in shown
    assert overtaken["version"] == 2
    returned = await agent(console, "turning")
    assert (returned["version"], returned["config"]["instructions"]) == (3, "First.")


async def test_a_deleted_agent_is_asked_about_and_brought_back(console: Console):
    await console.save("leaving")
    async with console.browser() as browser:
        fields = await form_of(browser, "/agents/leaving")
        asked = await browser.send("/agents/leaving/delete", tag=fields["tag"])
        kept = await console.api.get("/v1/agents/leaving")
        gone = await browser.send("/agents/leaving/delete", tag=fields["tag"], confirmed="1")
        led = await browser.open("/agents/leaving")
        page = await browser.open(led.headers["location"])
        back = await browser.send("/agents/leaving/restore")

    assert "Delete the agent leaving?" in asked.text and kept.status_code == 200
    assert gone.headers["location"] == "/agents/leaving/versions?done=agent-deleted"
    assert "is deleted: new jobs are refused" in page.text
    assert back.status_code == 303 and (await agent(console, "leaving"))["version"]


async def test_two_agents_are_tried_on_one_input(console: Console):
    await console.save("one")
    await console.save("two")
    async with console.browser() as browser:
        await browser.open("/agents/one/try")
        begun = await browser.send("/agents/one/try", input="Is it so?", beside="two")
        place = begun.headers["location"]

        async def answered() -> bool:
            return (await browser.open(place)).text.count("Yes.") == 2

        await until(answered, why="both have answered")
        refused = await browser.send("/agents/one/try", input="not begun", beside="nobody")

    assert re.fullmatch(r"/agents/one/try\?first=job_\w+&second=job_\w+", place)
    assert refused.status_code == 422 and "nobody" in refused.text
    assert (await console.api.get("/v1/jobs", params={"q": "not begun"})).json()["jobs"] == []


async def test_two_versions_are_tried_on_one_input(console: Console):
    await console.save("old", instructions="First.")
    await console.save("old", instructions="Second.")
    async with console.browser() as browser:
        fields = await form_of(browser, "/agents/old/versions")
        labelled = await browser.send("/agents/old/label", **fields | {"label": "before", "number": "1"})
        offered = await browser.open("/agents/old/try")
        begun = await browser.send("/agents/old/try", input="Is it so?", beside="label:before")
        place = begun.headers["location"]

        async def answered() -> bool:
            return (await browser.open(place)).text.count("Yes.") == 2

        await until(answered, why="both have answered")
        shown = browser.page
        await browser.send("/agents/old/label", label="before", remove="1")
        await browser.open("/agents/old/versions")
        refused = await browser.send("/agents/old/label", label="before", number="9")

    assert labelled.status_code == 303 and "version 1, before" in offered.text
    assert re.findall(r'class="quiet">version (\d)</span>', shown)[-2:] == ["2", "1"]
    assert (await agent(console, "old"))["labels"] == [] and refused.status_code == 422


async def test_uses_of_an_agent_and_a_latest_run_are_shown(console: Console):
    await console.save("used")
    await console.save("boss", agents=("used",))
    await console.run(agent="used", user_id="ann")
    nightly = {"cron": "0 3 * * *", "job": {"agent": "used", "input": "x"}}
    assert (await console.api.post("/v1/schedules/nightly", json=nightly)).is_success
    async with console.browser() as browser:
        page = await browser.open("/agents/used/uses?user=ann")
        nobody = await browser.open("/agents/used/uses?user=bob")

    assert 'href="/agents/boss"' in page.text and 'href="/schedules/named/nightly"' in page.text
    assert "status-completed" in page.text and "Yes." in page.text
    assert "This user has no run of the agent." in nobody.text
