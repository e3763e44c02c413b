"""Clients that exist already, more scopes in the middle of a call, and authorization servers that change."""

from __future__ import annotations

import asyncio

import pytest
from pydantic import ValidationError

from wayline.contracts.errors import Reject
from wayline.contracts.mcp_servers import PutServer, ServerView
from wayline.contracts.server_config import MASK, ServerConfig
from wayline.testkit.mcp_servers import serving

from .oauth_server import Protected
from .test_logging_in import SETTINGS, begin, finish, log_in, pay, protected, save, view

DOCUMENT = "https://wayline.example/v1/mcp/oauth/client.json"


async def test_a_missing_scope_fails_the_call_and_names_the_login(platform):
    async with protected(platform) as bank:
        bank.pay_scope = "pay"
        await log_in(platform, bank)

        refused = await pay(platform)
        state = (await view(platform)).state

        await log_in(platform, bank)
        paid = await pay(platform, "j2")

    assert refused.error.code == "needs_authorization"
    assert "insufficient_scope" in refused.error.message
    assert "wayline mcp login bank" in refused.error.message
    assert state == "connected"
    assert bank.asked_scopes == [None, "pay"]
    assert (paid.status, bank.paid) == ("success", 1)


async def test_a_second_missing_scope_keeps_the_first(platform):
    async with protected(platform) as bank:
        for scope in ("read", "pay"):
            await log_in(platform, bank)
            bank.pay_scope = scope
            assert (await pay(platform, scope)).status == "failed"

        await log_in(platform, bank)

    assert bank.asked_scopes == [None, "read", "read pay"]


async def test_a_missing_scope_of_one_call_cuts_no_other(platform):
    async with protected(platform, scope=None) as bank:
        bank.pay_scope = "pay"
        await log_in(platform, bank)
        before = len(bank.requests)

        replies = await asyncio.gather(*(pay(platform, f"j{n}") for n in range(10)))

        state = (await view(platform)).state

    assert {reply.error.code for reply in replies} == {"needs_authorization"}
    assert state == "connected"
    assert [method for _, method in bank.requests[before:]].count("tools/call") == 10


async def test_a_configured_scope_is_all_that_is_asked_for(platform):
    async with protected(platform, scope="read") as bank:
        bank.pay_scope = "pay"
        await log_in(platform, bank)

        reply = await pay(platform)

        await log_in(platform, bank)

    assert bank.asked_scopes == ["read", "read"]
    assert "`oauth.scope`" in reply.error.message


async def test_a_client_with_a_secret_logs_in_and_renews(platform):
    await platform.registry(platform.effects.settings(), **SETTINGS)
    bank = Protected()
    async with serving(bank) as bank.url:
        bank.secret = "canary-secret"
        await save(platform, bank.url, client_id="shop", client_secret=bank.secret, issuer=bank.origin)
        shown = await view(platform)
        assert shown.config is not None
        await put_back(platform, shown.config)
        await log_in(platform, bank)
        bank.valid = set()

        reply = await pay(platform)

    assert (reply.status, bank.refreshed) == ("success", 1)
    assert shown.config.oauth is not None and shown.config.oauth.client_secret is not None
    assert shown.config.oauth.client_secret.get_secret_value() == MASK
    assert "canary" not in shown.model_dump_json()


async def put_back(platform, config: ServerConfig) -> None:
    """Save what was shown, with its masks."""
    await platform.bus.ask(PutServer(tenant=platform.tenant, name="bank", config=config), ServerView)


async def test_a_clients_secret_goes_to_its_issuer_alone(platform):
    await platform.registry(platform.effects.settings(), **SETTINGS)
    thief = Protected()
    async with serving(thief) as thief.url:
        thief.secret = "canary-secret"
        oauth = {"client_id": "shop", "client_secret": thief.secret, "issuer": "https://bank.example"}
        await save(platform, thief.url, **oauth)

        with pytest.raises(Reject, match=r"another authorization server than `oauth\.issuer`"):
            await begin(platform)

    assert thief.asked_clients == []


def test_a_secret_needs_its_client_and_issuer():
    for more in ({"client_id": "shop"}, {"issuer": "https://bank.example"}):
        with pytest.raises(ValidationError, match="`client_secret` needs") as refused:
            ServerConfig.model_validate(
                {"url": "https://bank.example/mcp", "oauth": {"client_secret": "canary-secret", **more}}
            )
        assert "canary" not in str(refused.value)


async def test_our_own_document_names_the_client(platform):
    async with protected(platform) as bank:
        back = await bank.open(await begin(platform, client_metadata_url=DOCUMENT))
        await finish(platform, back)
        reply = await pay(platform)

    assert bank.asked_clients == [DOCUMENT]
    assert reply.status == "success"


async def test_a_new_authorization_server_gets_a_new_client(platform):
    new = Protected()
    async with protected(platform) as bank, serving(new) as new.url:
        new.client_id = "c2"
        await log_in(platform, bank)
        bank.trusts = new

        reply = await pay(platform)

        await finish(platform, await new.open(await begin(platform)))
        again = await pay(platform, "j2")

    assert reply.error.code == "needs_authorization"
    assert (bank.asked_clients, new.asked_clients) == (["c1"], ["c2"])
    assert again.status == "success"
    assert new.requests == []
