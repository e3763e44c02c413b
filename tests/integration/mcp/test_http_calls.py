"""One call of a tool over HTTP: once for its key, paid for and counted as over `/mcp`."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import httpx2

from wayline.testkit import Platform, until
from wayline.testkit.effects_server import EffectsServer

from .conftest import with_effects
from .test_paid_calls import PRICE, paying, until_month_is
from .test_tools import LOOK, PAY


async def called(
    http: httpx2.AsyncClient, tool: str, body: Any, key: str | None = None, **more: Any
) -> httpx2.Response:
    headers = {**({} if key is None else {"Idempotency-Key": key}), **more.pop("headers", {})}
    return await http.post(f"/v1/tools/{tool}/call", json=body, headers=headers, params=more)


async def test_a_call_with_a_key_acts_once(platform: Platform, effects: EffectsServer):
    await with_effects(platform, effects)
    http = await platform.http()
    body = {"arguments": {"amount": 3}}

    first, again = [await called(http, PAY, body, "order 7") for _ in range(2)]
    other = await called(http, PAY, {"arguments": {"amount": 4}}, "order 7")
    of_alice = await called(http, PAY, {**body, "user_id": "alice"}, "order 7")
    keyless = await called(http, PAY, body)
    calculated = await called(http, "calculator", {"arguments": {"expression": "2^10"}})
    wrong = await called(http, PAY, {"arguments": {"amount": "many"}}, "order 8")

    assert (first.status_code, first.json()["status"], first.json()["effect"]) == (200, "success", "once")
    assert (again.json()["text"], again.json()["repeated"]) == (first.json()["text"], True)
    assert first.json()["content"] and of_alice.json()["status"] == "success"
    assert (other.status_code, other.json()["code"]) == (409, "key_reused")
    assert (keyless.status_code, keyless.json()["code"]) == (400, "idempotency_key_needed")
    assert "1024" in calculated.json()["text"].replace(",", "") and calculated.json()["error"] is None
    assert (wrong.status_code, wrong.json()["status"]) == (200, "failed")
    assert (
        (await called(http, "nothing", {})).status_code == (await called(http, "run_agent", {}, "k")).status_code == 404
    )
    assert effects.amounts() == [3, 3]


async def test_a_slow_call_runs_on_and_is_asked_for_again(platform: Platform, effects: EffectsServer):
    effects.delay_ms = 1_500
    await with_effects(platform, effects)
    http = await platform.http()
    body = {"arguments": {"amount": 3}}

    begun = await called(http, PAY, body, "order 7", wait=0)
    read = await called(http, LOOK, {}, wait=0)
    ended = await called(http, PAY, body, "order 7")

    assert (begun.status_code, begun.json()["status"]) == (202, "in_progress")
    assert (read.status_code, read.json()["status"], read.json()["error"]["code"]) == (200, "failed", "timeout")
    assert (ended.status_code, ended.json()["status"]) == (200, "success")
    assert effects.amounts() == [3]


async def test_the_scopes_of_a_key_decide_what_it_may_call(platform: Platform, effects: EffectsServer):
    door = await with_effects(platform, effects, ask="writes")
    http = await platform.http()
    keys = {
        scopes: {"Authorization": f"Bearer {await door.key(*scopes)}"}
        for scopes in (("read", "write"), ("tools",), ("write", "tools"))
    }

    found = {
        (scopes, tool): (await called(http, tool, {}, "k", headers=headers)).status_code
        for scopes, headers in keys.items()
        for tool in (PAY, LOOK)
    }
    for_user = await called(http, LOOK, {"user_id": "alice"}, headers=keys["tools",])
    approved = await called(http, PAY, {}, "k", headers=keys["write", "tools"])

    assert list(found.values()) == [403, 403, 403, 200, 409, 200]
    assert (for_user.status_code, approved.json()["code"]) == (403, "needs_approval")
    assert effects.amounts() == []


async def test_a_charge_is_held_before_a_call_and_counted_after(platform: Platform, effects: EffectsServer):
    await paying(platform, effects, limit_usd=Decimal("0.015"))
    http = await platform.http()
    effects.delay_ms = 500

    # Its client waits no longer, and it is counted all the same.
    begun = await called(http, PAY, {"arguments": {"amount": 1}}, "order 1", wait=0)
    await until(lambda: effects.amounts() == [1], why="the call has acted")
    await until_month_is(platform, spent=PRICE, reserved=Decimal(0))
    refused = await called(http, PAY, {"arguments": {"amount": 2}}, "order 2")
    again = await called(http, PAY, {"arguments": {"amount": 1}}, "order 1")

    assert begun.status_code == 202
    assert (refused.status_code, refused.json()["code"]) == (402, "no_budget")
    assert (again.json()["status"], Decimal(again.json()["cost_usd"])) == ("success", PRICE)
    await until_month_is(platform, spent=PRICE, reserved=Decimal(0))
    assert effects.amounts() == [1]
