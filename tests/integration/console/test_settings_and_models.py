"""The pages about settings and models on the whole platform: what their forms change is what the API has afterwards."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ...console_forms import Sent
from .conftest import SAME_ORIGIN, Browser, Console

pytestmark = [pytest.mark.asyncio(loop_scope="module")]
FRAME = ("theme", "then", "s", "")


async def form_of(browser: Browser, path: str) -> dict[str, str]:
    """Return what the forms of a page send if nobody touches them."""
    await browser.open(path)
    return {name: value for name, value in Sent(browser.page).fields.items() if name not in FRAME}


async def settings_of(console: Console) -> dict[str, Any]:
    return (await console.api.get("/v1/settings")).json()


async def test_settings_are_changed_and_go_back_to_their_default(console: Console):
    async with console.browser() as browser:
        fields = await form_of(browser, "/settings")
        typed = {"style": "direct", "max_steps_more": "40", "cost_cents": "25"}
        saved = await browser.send("/settings", **fields | typed)
        changed = await settings_of(console)
        fields = await form_of(browser, "/settings")
        await browser.send("/settings", **fields, default="style")
        back = await settings_of(console)

    assert saved.headers["location"] == "/settings?done=saved"
    assert (changed["style"], changed["max_steps"], changed["max_cost_usd"]) == ("direct", 40, "0.25")
    assert set(changed["defaults"]) >= {"tools", "web_search", "memory", "default_model"}
    assert (back["style"], back["max_steps"]) == ("balanced", 40) and "style" in back["defaults"]


async def test_settings_that_were_changed_meanwhile_are_shown_first(console: Console):
    async with console.browser() as browser:
        fields = await form_of(browser, "/settings") | {"max_seconds": "50"}
        await console.api.patch("/v1/settings", json={"max_seconds": 70})
        refused = await browser.send("/settings", **fields)
        again = Sent(browser.page).fields["tag"]
        await browser.send("/settings", **fields | {"tag": again})

    assert refused.status_code == 422 and "changed after this form was opened" in refused.text
    assert re.search(r"max_seconds</td>\s*<td[^>]*>70\.0</td><td[^>]*>50\.0<", refused.text)
    assert (await settings_of(console))["max_seconds"] == 50


async def test_a_refused_setting_says_why_and_changes_nothing(console: Console):
    before = await settings_of(console)
    async with console.browser() as browser:
        fields = await form_of(browser, "/settings")
        refused = await browser.send("/settings", **fields | {"max_steps_more": "5000"})

    assert refused.status_code == 422 and "less than or equal to 1000" in refused.text
    assert await settings_of(console) == before


async def test_a_process_is_drained_and_takes_work_again(console: Console):
    async def executor() -> dict[str, Any]:
        found = (await console.api.get("/v1/replicas")).json()["replicas"]
        return next(one for one in found if one["service"] == "executor")

    name = (await executor())["name"]
    async with console.browser() as browser:
        shown = await browser.open("/settings/services")
        asked = await browser.send(f"/settings/services/{name}/drain")
        drained = await browser.send(f"/settings/services/{name}/drain", confirmed="1")
        state = await executor()
        page = (await browser.open("/settings/services")).text
        gone = await browser.send("/settings/services/executor-nowhere-1/drain", confirmed="1")
        await browser.send(f"/settings/services/{name}/undrain")
        after = await executor()

    assert name in shown.text and "No other process of its service is ready" in asked.text
    assert drained.headers["location"] == "/settings/services?done=drained"
    assert state["drained_at"] and "drained <time" in page and "it takes no work until" not in page
    assert gone.status_code == 422 and "executor-nowhere-1" in gone.text
    assert after["drained_at"] is None


async def test_a_model_is_added_changed_and_removed(console: Console):
    async with console.browser() as browser:
        fields = await form_of(browser, "/new-model")
        typed = {"provider": "chat", "model": "org/own:8b", "tier": "flash", "price.input": "0.5", "price.output": "2"}
        typed |= {"price.further.0.daily_from": "22:00", "price.further.0.input": "0", "price.further.0.output": "1"}
        roomier = await browser.send("/save-model", **fields | typed, rows="1")
        made = await browser.send("/save-model", **fields | typed)
        twice = await browser.send("/save-model", **fields | typed)
        place = made.headers["location"].partition("?")[0]
        fields = await form_of(browser, place)
        page = browser.page
        await browser.send("/save-model", **fields | {"price.source": "our own list"})
        card = (await console.api.get("/v1/models/chat/org/own:8b")).json()
        overtaken = await browser.send("/save-model", **fields | {"price.source": "another"})
        fields = await form_of(browser, place)
        gone = {name: fields[name] for name in ("provider", "model", "tag", "token")}
        asked = await browser.send("/delete-model", **gone)
        await browser.send("/delete-model", **gone, confirmed="1")

    assert 'name="price.further.1.tokens"' in roomier.text and 'value="22:00"' in roomier.text
    assert [(one["daily_from"], one["rates"]["output"]) for one in card["prices"]["when"]] == [("22:00:00", "1")]
    assert place == "/models/chat/org/own%3A8b" and "your card" in page
    assert twice.status_code == 422 and "already" in twice.text
    assert (card["prices"]["rates"]["input"], card["prices"]["source"]) == ("0.5", "our own list")
    assert overtaken.status_code == 422 and "save again" in overtaken.text
    assert "Remove your card of chat/org/own:8b?" in asked.text
    assert (await console.api.get("/v1/models/chat/org/own:8b")).status_code == 404


async def test_the_router_says_which_model_would_take_an_input(console: Console):
    before = (await console.api.get("/v1/jobs")).json()["jobs"]
    async with console.browser() as browser:
        await browser.open("/models")
        asked = await browser.send("/models", agent="helper", input="Is it so?")
        refused = await browser.send("/models", agent="nobody", input="Is it so?")
        page = await browser.open("/models/chat/scripted")

    assert "chat/scripted</strong>" in asked.text and "Expected to cost" in asked.text
    assert refused.status_code == 422 and "nobody" in refused.text
    assert '<a href="/agents/helper">' in page.text
    assert (await console.api.get("/v1/jobs")).json()["jobs"] == before


async def test_tenants_are_made_bounded_and_disabled(console: Console):
    async with console.browser() as browser:
        await browser.open("/settings/tenants")
        made = await browser.send("/settings/tenants", tenant="acme")
        fields = await form_of(browser, "/settings/tenants?tenant=acme")
        limits = {name: value for name, value in fields.items() if "." in name or name in ("tag", "token")}
        token = fields["token"]
        await browser.send("/settings/tenants/acme/limits", **limits | {"tenant.requests": "600"})
        bounded = (await console.api.get("/v1/tenants/acme/limits")).json()
        fields = await form_of(browser, "/settings/tenants?tenant=acme")
        page = browser.page
        await browser.send("/settings/tenants/acme/limits", **limits | {"tag": fields["tag"]})
        asked = await browser.send("/settings/tenants/acme/disable", token=token)
        await browser.send("/settings/tenants/acme/disable", token=token, confirmed="1")
        disabled = (await console.api.get("/v1/tenants/acme")).json()
        await browser.send("/settings/tenants/acme/enable", token=token)
        refused = await browser.send("/settings/tenants", token=token, tenant="Not A Name")

    assert made.headers["location"] == "/settings/tenants?tenant=acme&done=saved"
    assert bounded["limits"]["tenant"]["requests"]["per_minute"] == 600 and "Now: 600," in page
    assert (await console.api.get("/v1/tenants/acme/limits")).json()["limits"] is None
    assert "Disable the tenant acme?" in asked.text and disabled["disabled_at"]
    assert (await console.api.get("/v1/tenants/acme")).json()["disabled_at"] is None
    assert refused.status_code == 422


async def test_changes_are_found_by_kind_and_page_by_page(console: Console, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("wayline.console.pages.settings.audit_page.PAGE_SIZE", 2)
    for number in range(3):
        await console.api.put("/v1/agents/audited", json={"description": f"Number {number}."})
    async with console.browser() as browser:
        page = await browser.open("/settings/audit?kind=agent&name=audited&by=local")
        older = re.search(r'href="(/settings/audit\?[^"]*cursor[^"]*)"', page.text)
        assert older is not None
        rest = await browser.open(older[1].replace("&amp;", "&"))
        none = await browser.open("/settings/audit?kind=nothing")

    assert (page.text.count(">made</td>"), rest.text.count(">made</td>")) == (2, 1)
    assert "put agent" in page.text and "No changes" in none.text


async def test_a_key_is_made_shown_once_and_revoked(console: Console):
    async with console.browser() as browser:
        await browser.open("/settings/keys")
        token = Sent(browser.page).fields["token"]

        async def make(name: str, *scopes: str) -> str:
            data: dict[str, Any] = {"token": token, "name": name, "scope": list(scopes), "days": "30"}
            answer = await browser.http.post("/settings/keys", data=data, headers=SAME_ORIGIN)
            found = re.search(r"wl_[0-9a-f]{16}_[\w-]+", answer.text)
            return found[0] if found else answer.text

        weak = await make("weak", "read")
        first = await make("operator", "read", "write", "admin", "operator")
        closed = await browser.open("/settings/keys")
        await browser.http.post("/sign-in", data={"key": first, "then": "/settings/keys"}, headers=SAME_ORIGIN)
        await browser.open("/settings/keys")
        token = Sent(browser.page).fields["token"]
        reader = await make("reader", "read")
        listed = (await browser.open("/settings/keys")).text
        key_id = reader.split("_")[1]
        asked = await browser.send(f"/settings/keys/{key_id}/revoke")
        await browser.send(f"/settings/keys/{key_id}/revoke", confirmed="1")
        gone = (await browser.open("/settings/keys")).text
    refused = await console.api.get("/v1/me", headers={"authorization": f"Bearer {reader}"})

    assert "give it the scope operator" in weak and closed.status_code == 303
    assert first not in listed and reader not in listed and f"/settings/keys/{key_id}/revoke" in listed
    assert "Revoke the key reader?" in asked.text and f"/settings/keys/{key_id}/revoke" not in gone
    assert refused.status_code == 401
