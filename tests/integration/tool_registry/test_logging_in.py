"""Logins to servers with OAuth: bound to one tenant and one server, made once, and their tokens seen nowhere."""

from __future__ import annotations

import logging
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import parse_qsl, urlsplit

import pytest
import pytest_asyncio

from wayline.contracts.errors import Reject, Retry
from wayline.contracts.mcp_servers import (
    GetImpact,
    GetServer,
    PutServer,
    ServerImpact,
    ServerReport,
    ServerView,
    TryServer,
)
from wayline.contracts.server_config import ServerConfig, ServerOAuth
from wayline.contracts.server_logins import (
    AuthorizationForgotten,
    AuthorizationUrl,
    AuthorizeServer,
    FinishAuthorization,
    ForgetAuthorization,
    GetLogin,
    LoginView,
    OpenLogin,
    ServerAuthorized,
)
from wayline.contracts.tools import Effect
from wayline.testkit import until
from wayline.testkit.mcp_servers import serving

from .conftest import RegistryPlatform
from .oauth_server import Protected
from .test_secrets_of_servers import dump

pytestmark = [pytest.mark.asyncio(loop_scope="module")]
alone = pytest.mark.asyncio(loop_scope="function")
"""For a test that starts and stops registries, or has its own settings."""

KEY, NEW_KEY = (f"{name}:{b64encode(bytes([byte]) * 32).decode()}" for name, byte in (("k", 1), ("n", 2)))
CALLBACK = "http://127.0.0.1:8080/v1/mcp/oauth/callback"
START = CALLBACK.replace("callback", "start")
BROWSER = "b" * 43
"""The secret of the one browser here."""
SETTINGS = {"keys": KEY, "server_allowed_hosts": ["127.0.0.1:*"], "reread_every_s": 0.2}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_registry(shared_platform: RegistryPlatform) -> RegistryPlatform:
    await shared_platform.registry(shared_platform.effects.settings(), **SETTINGS)
    return shared_platform


@asynccontextmanager
async def protected(
    platform, *, replicas: int = 0, expires_in: int = 3_600, settings=None, **oauth
) -> AsyncIterator[Protected]:
    """A server that needs a login, and a tenant that has saved it; registries are started first where none runs."""
    for _ in range(replicas):
        await platform.registry(platform.effects.settings(), **SETTINGS, **(settings or {}))
    bank = Protected(expires_in=expires_in)
    async with serving(bank) as bank.url:
        await save(platform, bank.url, **oauth)
        yield bank


async def save(platform, url: str, *, name: str = "bank", tenant: str | None = None, **oauth) -> None:
    config = ServerConfig(url=url, oauth=ServerOAuth(**oauth), effects={"pay": Effect.ONCE})
    await platform.bus.ask(PutServer(tenant=tenant or platform.tenant, name=name, config=config), ServerView)


async def begin(platform, *, name: str = "bank", tenant: str | None = None, **more) -> str:
    """Begin a login, go on from its page with the one browser, and return where that goes."""
    link = await begun(platform, name=name, tenant=tenant, **more)
    state = dict(parse_qsl(urlsplit(link).query))["state"]
    ask = OpenLogin(tenant=tenant or platform.tenant, state=state, browser=BROWSER)
    return (await platform.bus.ask(ask, AuthorizationUrl)).url


async def begun(platform, *, name: str = "bank", tenant: str | None = None, **more) -> str:
    """Begin a login, and return the link to its page."""
    ask = AuthorizeServer(tenant=tenant or platform.tenant, name=name, redirect_uri=CALLBACK, start_uri=START, **more)
    return (await platform.bus.ask(ask, AuthorizationUrl, timeout_s=30)).url


async def finish(
    platform, back: dict[str, str], *, tenant: str | None = None, browser: str | None = BROWSER
) -> ServerAuthorized:
    ask = FinishAuthorization(tenant=tenant or platform.tenant, browser=browser, **back)
    return await platform.bus.ask(ask, ServerAuthorized, timeout_s=30)


async def log_in(platform, bank: Protected) -> None:
    await finish(platform, await bank.open(await begin(platform)))
    await until_state(platform, "connected")


async def view(platform) -> ServerView:
    return await platform.bus.ask(GetServer(tenant=platform.tenant, name="bank"), ServerView)


async def until_state(platform, state: str) -> None:
    async def is_so() -> bool:
        return (await view(platform)).state == state

    await until(is_so, why=f"the bank is {state}")


async def pay(platform, job: str = "j1", **more):
    return await platform.call(platform.ask("bank__pay", {"amount": 1}, job=job, **more))


async def test_a_login_makes_the_tools_callable(shared):
    async with protected(shared) as bank:
        await until_state(shared, "needs_authorization")
        before = await pay(shared, "j0")

        await log_in(shared, bank)

        reply = await pay(shared)

    assert before.status == "failed"
    assert "wayline mcp login bank" in before.error.message
    assert (reply.status, reply.content, bank.paid) == ("success", "paid", 1)


async def test_a_callback_counts_once(shared):
    async with protected(shared) as bank:
        back = await bank.open(await begin(shared))
        await finish(shared, back)

        with pytest.raises(Reject, match="finished before"):
            await finish(shared, back)


@pytest.mark.parametrize("browser", [None, "o" * 43])
async def test_a_login_opened_in_another_browser_is_refused_before_exchange(shared, browser: str | None):
    async with protected(shared) as bank:
        back = await bank.open(await begin(shared))

        with pytest.raises(Reject, match="begun in another browser"):
            await finish(shared, back, browser=browser)

        # Nor does it count for its own browser any more.
        with pytest.raises(Reject, match="is unknown, over"):
            await finish(shared, back)
        assert (bank.given, list(bank.codes)) == ([], [back["code"]])


async def test_a_login_whose_page_nobody_opened_is_refused(shared):
    async with protected(shared):
        link = await begun(shared)
        state = dict(parse_qsl(urlsplit(link).query))["state"]
        view = await shared.bus.ask(GetLogin(tenant=shared.tenant, state=state), LoginView)

        with pytest.raises(Reject, match="begun in another browser"):
            await finish(shared, {"state": state, "code": "c1"})

    assert link == f"{START}?state={state}"
    assert view == LoginView(name="bank", authorization_server="127.0.0.1")


async def test_an_expired_state_is_refused(shared):
    async with protected(shared) as bank:
        back = await bank.open(await begin(shared))
        late = "UPDATE logins SET expires_at = clock_timestamp()"
        await shared.ledger.execute(shared.tenant, late)

        with pytest.raises(Reject, match="is unknown, over"):
            await finish(shared, back)


async def test_a_state_of_another_tenant_is_refused(shared):
    async with protected(shared) as bank:
        other = f"{shared.tenant}-x"
        await save(shared, bank.url, tenant=other)
        mine = await bank.open(await begin(shared))
        theirs = await bank.open(await begin(shared, tenant=other))

        for tenant, back in ((other, mine), (shared.tenant, theirs)):
            with pytest.raises(Reject, match="is unknown"):
                await finish(shared, back, tenant=tenant)

        assert await shared.ledger.fetch(shared.tenant, "SELECT * FROM authorizations") == []


async def test_a_code_of_another_login_fails_pkce(shared):
    async with protected(shared) as bank:
        first = await bank.open(await begin(shared))
        second = await bank.open(await begin(shared))

        with pytest.raises(Reject, match="refused the code"):
            await finish(shared, {**first, "code": second["code"]})


async def test_an_answer_of_another_issuer_is_refused(shared):
    async with protected(shared) as bank:
        for iss in ({"iss": "http://evil.example"}, {}):
            back = await bank.open(await begin(shared))
            back.pop("iss")
            with pytest.raises(Reject, match="another authorization server"):
                await finish(shared, {**back, **iss})
        bank.issuer = "http://evil.example"

        with pytest.raises(Reject, match="names another issuer"):
            await begin(shared)

    assert bank.given == []


@alone
async def test_an_authorization_server_inside_is_not_asked(platform):
    bank = Protected()
    async with serving(bank) as url:
        # The guard is on: this machine's own address is one of the inside.
        await platform.registry(platform.effects.settings(), **{**SETTINGS, "server_allowed_hosts": []})
        await save(platform, url)

        with pytest.raises(Reject, match="cannot be asked"):
            await begin(platform)


@alone
async def test_tokens_are_renewed_once_for_all_replicas(platform):
    async with protected(platform, replicas=2) as bank:
        await log_in(platform, bank)
        bank.valid = set()

        replies = [await pay(platform, f"j{n}") for n in range(6)]

    assert [reply.status for reply in replies] == ["success"] * 6
    assert bank.refreshed == 1


async def test_a_refused_refresh_asks_for_a_login(shared):
    async with protected(shared) as bank:
        await log_in(shared, bank)
        bank.valid, bank.refresh_tokens = set(), set()

        reply = await pay(shared)
        await until_state(shared, "needs_authorization")

        assert reply.error.code == "needs_authorization"
        assert "wayline mcp login bank" in reply.error.message
        await log_in(shared, bank)
        assert (await pay(shared, "j2")).status == "success"


async def test_tokens_never_go_to_another_url(shared):
    thief = Protected()
    async with protected(shared) as bank, serving(thief) as url:
        await log_in(shared, bank)
        sent: list[str] = []
        answer = thief._answer

        async def noting(request):
            sent.append(request.headers.get("authorization", ""))
            return await answer(request)

        thief._answer = noting
        await save(shared, url)
        reply = await pay(shared)

    assert "wayline mcp login bank" in reply.error.message
    assert not any(sent)


async def test_an_unsaved_change_is_tried_with_the_saved_login(shared):
    async with protected(shared) as bank:
        await log_in(shared, bank)
        changed = ServerConfig(url=bank.url, oauth=ServerOAuth(), timeout_s=7)

        tried = await shared.bus.ask(TryServer(tenant=shared.tenant, name="bank", config=changed), ServerReport)
        seen = len(bank.requests)
        # Nobody answers for the recorded calls here: that is asked once the server was reached.
        with pytest.raises(Retry):
            await shared.bus.ask(GetImpact(tenant=shared.tenant, name="bank", config=changed), ServerImpact)

    assert ([tool.name for tool in tried.tools], tried.why) == (["pay"], "")
    assert len(bank.requests) > seen


async def test_an_unsaved_change_of_the_url_is_tried_without_login(shared):
    thief = Protected()
    async with protected(shared) as bank, serving(thief) as thief.url:
        await log_in(shared, bank)
        # It would take the tokens that the bank gave out.
        thief.trusts = bank
        changed = ServerConfig(url=thief.url, oauth=ServerOAuth())
        ask = TryServer(tenant=shared.tenant, name="bank", config=changed)

        tried = await shared.bus.ask(ask, ServerReport, timeout_s=30)

    assert not tried.ok
    assert thief.requests == []


async def test_forgotten_tokens_are_revoked(shared):
    async with protected(shared) as bank:
        await log_in(shared, bank)

        ask = ForgetAuthorization(tenant=shared.tenant, name="bank")
        done = await shared.bus.ask(ask, AuthorizationForgotten, timeout_s=30)

        await until_state(shared, "needs_authorization")
        assert done == AuthorizationForgotten(forgotten=True, revoked=True)
        assert bank.revoked == [bank.given[1]]


@alone
async def test_tokens_are_sealed_with_a_new_key(platform):
    async with protected(platform, replicas=1) as bank:
        await log_in(platform, bank)
        [first] = platform.running[:1]
        platform.running.remove(first)
        await first.stop(5)

        await platform.registry(platform.effects.settings(), **{**SETTINGS, "keys": f"{NEW_KEY},{KEY}"})

        async def rotated() -> bool:
            rows = await platform.ledger.fetch(platform.tenant, "SELECT key_id FROM authorizations")
            return [row["key_id"] for row in rows] == ["n"]

        await until(rotated, why="the tokens are encrypted with the new key")
        assert (await pay(platform)).status == "success"


@alone
async def test_a_token_is_in_no_store_log_span_or_error(platform, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    heard: list[bytes] = []

    async def hear(message) -> None:
        heard.append(message.data + repr(message.headers).encode())

    await platform.bus.nc.subscribe(">", cb=hear)
    registry = await platform.registry(platform.effects.settings(), **SETTINGS)
    bank = Protected()
    async with serving(bank) as url:
        await save(platform, url)
        await log_in(platform, bank)
        replies = [await pay(platform)]
        bank.valid = set()
        replies.append(await pay(platform, "j2"))
        bank.valid, bank.refresh_tokens = set(), set()
        replies.append(await pay(platform, "j3"))
        shown = await view(platform)

    written = {
        "views": shown.model_dump_json() + "".join(reply.model_dump_json() for reply in replies),
        "logs": "".join(line.getMessage() for line in caplog.records) + "".join(capfd.readouterr()),
        "spans": "".join(span.to_json() for span in registry.spans.get_finished_spans()),
        "bus": b"".join(heard).decode(errors="replace"),
        "database": await dump(platform.database.dsn),
    }
    assert {where for where, text in written.items() if "canary-" in text} == set()
    assert [reply.status for reply in replies] == ["success", "success", "failed"]
    assert len(bank.given) == 4
