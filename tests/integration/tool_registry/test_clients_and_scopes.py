"""Clients that exist already, more scopes in the middle of a call, and authorization servers that change."""

from __future__ import annotations

import asyncio

import pytest
import pytest_asyncio
from pydantic import ValidationError

from wayline.contracts.errors import Reject
from wayline.contracts.mcp_servers import PutServer, ServerView
from wayline.contracts.server_config import MASK, ServerConfig
from wayline.testkit.mcp_servers import serving

from .conftest import RegistryPlatform
from .oauth_server import Protected
from .test_logging_in import SETTINGS, begin, finish, log_in, pay, protected, save, view

DOCUMENT = "https://wayline.example/v1/mcp/oauth/client.json"


pytestmark = [pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_registry(shared_platform: RegistryPlatform) -> RegistryPlatform:
    await shared_platform.registry(shared_platform.effects.settings(), **SETTINGS)
    return shared_platform


async def test_a_missing_scope_fails_the_call_and_names_the_login(shared):
    async with protected(shared) as bank:
        bank.pay_scope = "pay"
        await log_in(shared, bank)

        refused = await pay(shared)
        state = (await view(shared)).state

        await log_in(shared, bank)
        paid = await pay(shared, "j2")

    assert refused.error.code == "needs_authorization"
    assert "insufficient_scope" in refused.error.message
    assert "wayline mcp login bank" in refused.error.message
    assert state == "connected"
    assert bank.asked_scopes == [None, "pay"]
    assert (paid.status, bank.paid) == ("success", 1)


async def test_a_second_missing_scope_keeps_the_first(shared):
    async with protected(shared) as bank:
        for scope in ("read", "pay"):
            await log_in(shared, bank)
            bank.pay_scope = scope
            assert (await pay(shared, scope)).status == "failed"

        await log_in(shared, bank)

    assert bank.asked_scopes == [None, "read", "read pay"]


async def test_a_missing_scope_of_one_call_cuts_no_other(shared):
    async with protected(shared, scope=None) as bank:
        bank.pay_scope = "pay"
        await log_in(shared, bank)
        before = len(bank.requests)

        replies = await asyncio.gather(*(pay(shared, f"j{n}") for n in range(10)))

        state = (await view(shared)).state

    assert {reply.error.code for reply in replies} == {"needs_authorization"}
    assert state == "connected"
    assert [method for _, method in bank.requests[before:]].count("tools/call") == 10


async def test_a_configured_scope_is_all_that_is_asked_for(shared):
    async with protected(shared, scope="read") as bank:
        bank.pay_scope = "pay"
        await log_in(shared, bank)

        reply = await pay(shared)

        await log_in(shared, bank)

    assert bank.asked_scopes == ["read", "read"]
    assert "`oauth.scope`" in reply.error.message


async def test_a_client_with_a_secret_logs_in_and_renews(shared):
    bank = Protected()
    async with serving(bank) as bank.url:
        bank.secret = "canary-secret"
        await save(shared, bank.url, client_id="shop", client_secret=bank.secret, issuer=bank.origin)
        shown = await view(shared)
        assert shown.config is not None
        await put_back(shared, shown.config)
        await log_in(shared, bank)
        bank.valid = set()

        reply = await pay(shared)

    assert (reply.status, bank.refreshed) == ("success", 1)
    assert shown.config.oauth is not None and shown.config.oauth.client_secret is not None
    assert shown.config.oauth.client_secret.get_secret_value() == MASK
    assert "canary" not in shown.model_dump_json()


async def put_back(platform, config: ServerConfig) -> None:
    """Save what was shown, with its masks."""
    await platform.bus.ask(PutServer(tenant=platform.tenant, name="bank", config=config), ServerView)


async def test_a_clients_secret_goes_to_its_issuer_alone(shared):
    thief = Protected()
    async with serving(thief) as thief.url:
        thief.secret = "canary-secret"
        oauth = {"client_id": "shop", "client_secret": thief.secret, "issuer": "https://bank.example"}
        await save(shared, thief.url, **oauth)

        with pytest.raises(Reject, match=r"another authorization server than `oauth\.issuer`"):
            await begin(shared)

    assert thief.asked_clients == []


async def test_a_secret_needs_its_client_and_issuer():
    for more in ({"client_id": "shop"}, {"issuer": "https://bank.example"}):
        with pytest.raises(ValidationError, match="`client_secret` needs") as refused:
            ServerConfig.model_validate(
                {"url": "https://bank.example/mcp", "oauth": {"client_secret": "canary-secret", **more}}
            )
        assert "canary" not in str(refused.value)


async def test_our_own_document_names_the_client(shared):
    async with protected(shared) as bank:
        back = await bank.open(await begin(shared, client_metadata_url=DOCUMENT))
        await finish(shared, back)
        reply = await pay(shared)

    assert bank.asked_clients == [DOCUMENT]
    assert reply.status == "success"


async def test_a_new_authorization_server_gets_a_new_client(shared):
    new = Protected()
    async with protected(shared) as bank, serving(new) as new.url:
        new.client_id = "c2"
        await log_in(shared, bank)
        bank.trusts = new

        reply = await pay(shared)

        await finish(shared, await new.open(await begin(shared)))
        again = await pay(shared, "j2")

    assert reply.error.code == "needs_authorization"
    assert (bank.asked_clients, new.asked_clients) == (["c1"], ["c2"])
    assert again.status == "success"
    assert new.requests == []
