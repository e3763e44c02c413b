"""Renewals of tokens by authorization servers that hang, drip, fail and rotate."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial

import pytest
import pytest_asyncio
from starlette.responses import JSONResponse, Response, StreamingResponse

from wayline.contracts.errors import Reject
from wayline.testkit import until
from wayline.tool_registry.logins import oauth_flow, token_renewals

from .conftest import RegistryPlatform
from .test_logging_in import SETTINGS, begin, finish, log_in, pay, protected, until_state

pytestmark = [pytest.mark.asyncio(loop_scope="module")]
alone = pytest.mark.asyncio(loop_scope="function")
"""For a test that starts and stops registries, or has its own settings."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_registry(shared_platform: RegistryPlatform) -> RegistryPlatform:
    await shared_platform.registry(shared_platform.effects.settings(), **SETTINGS)
    return shared_platform


async def none_is_held(platform) -> bool:
    [held] = await platform.ledger.fetch(
        platform.tenant,
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in %'",
    )
    return held["count"] == 0


async def test_a_hanging_renewal_holds_no_database_connection(shared):
    async with protected(shared) as bank:
        await log_in(shared, bank)
        asked, answer = asyncio.Event(), asyncio.Event()

        async def hang(form: dict[str, str]) -> Response:
            asked.set()
            await answer.wait()
            return bank.give_tokens(form)

        bank.answer_token, bank.valid = hang, set()
        paying = [asyncio.create_task(pay(shared, f"j{n}")) for n in range(4)]
        await asked.wait()
        await until(partial(none_is_held, shared), why="no connection is held while the bank thinks")
        other = await shared.call(shared.ask("effects__pay_once", {"amount": 3}, job="k1"))
        answer.set()
        paid = [await one for one in paying]

    assert other.status == "success"
    assert [one.status for one in paid] == ["success"] * 4
    assert bank.refreshed == 1


@pytest.mark.parametrize(
    "answer",
    [
        JSONResponse({"error": "invalid_request"}, 400),
        JSONResponse({"error": ["invalid_grant"]}, 400),
        JSONResponse({"error": "invalid_grant"}, 503),
        Response("<html>sign in to the hotel's network</html>", 200, media_type="text/html"),
        Response("no", 401),
        Response("no", 403),
        Response("slow down", 429),
    ],
    ids=lambda answer: f"{answer.status_code} {answer.body.decode()[:28]}",
)
async def test_a_renewal_that_fails_otherwise_keeps_the_login(shared, answer):
    async with protected(shared) as bank:
        await log_in(shared, bank)

        async def fail(form: dict[str, str]) -> Response:
            return answer

        bank.answer_token, bank.valid = fail, set()
        failed = await pay(shared)
        bank.answer_token = None
        await until_state(shared, "connected")
        paid = await pay(shared, "j2")

    assert failed.status == "failed"
    assert paid.status == "success"


@alone
async def test_tokens_that_arrive_while_the_registry_stops_are_kept(platform):
    async with protected(platform, replicas=1) as bank:
        await log_in(platform, bank)
        rotated, answer = asyncio.Event(), asyncio.Event()

        async def rotate(form: dict[str, str]) -> Response:
            given = bank.give_tokens(form)
            rotated.set()
            await answer.wait()
            return given

        bank.answer_token, bank.valid = rotate, set()
        paying = asyncio.create_task(pay(platform))
        await rotated.wait()
        stopping = asyncio.create_task(platform.running.pop().stop(0.1))
        await asyncio.wait({stopping}, timeout=0.5)
        answer.set()
        await stopping
        paying.cancel()
        bank.answer_token = None
        await platform.registry(platform.effects.settings(), **SETTINGS)
        paid = await pay(platform, "j2")

    assert paid.status == "success"
    assert bank.refreshed == 1


async def test_dripping_answers_end_at_their_limit(shared, monkeypatch):
    monkeypatch.setattr(oauth_flow, "SEND_WITHIN_S", 0.3)
    monkeypatch.setattr(token_renewals, "RENEW_WITHIN_S", 0.5)
    async with protected(shared) as bank:
        await log_in(shared, bank)
        back = await bank.open(await begin(shared))

        async def drops() -> AsyncIterator[bytes]:
            while True:
                yield b" "
                await asyncio.sleep(0.02)

        async def drip(form: dict[str, str]) -> Response:
            return StreamingResponse(drops(), media_type="application/json")

        bank.answer_token, bank.valid = drip, set()
        with pytest.raises(Reject, match=r"has not answered within 0\.3 s"):
            await finish(shared, back)
        reply = await pay(shared)

    assert reply.status == "failed"
    assert "cannot be renewed" in reply.error.message


async def test_a_claim_of_a_replica_that_died_runs_out(shared, monkeypatch):
    monkeypatch.setattr(token_renewals, "LOOK_AGAIN_S", 0.02)
    async with protected(shared) as bank:
        await log_in(shared, bank)
        bank.valid = set()
        dead = "UPDATE authorizations SET claim = 'dead', claimed_until = clock_timestamp() + interval '1 hour'"
        await shared.ledger.execute(shared.tenant, dead)
        paying = asyncio.create_task(pay(shared))

        async def waits() -> bool:
            return bool(bank.requests)

        await until(waits, why="the server has refused the token")
        assert bank.refreshed == 0
        await shared.ledger.execute(shared.tenant, dead.replace("+ interval '1 hour'", "- interval '1 s'"))
        reply = await paying

    assert (reply.status, bank.refreshed) == ("success", 1)
