"""Clients of many keys: as few connections are kept as may be, and none is taken from a request that uses it."""

from __future__ import annotations

from contextlib import AsyncExitStack

import pytest

from wayline.client.client import Client
from wayline.console.access import visitor
from wayline.console.access.visitor import CLIENTS_MAX, ME_KEPT_S, Clients


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """The keys whose clients were closed."""
    keys = list[str | None]()

    class Counted(Client):
        async def __aexit__(self, *error: object) -> None:
            keys.append(self.address.key)
            await super().__aexit__(*error)

    monkeypatch.setattr(visitor, "Client", Counted)
    return keys


async def test_a_client_in_use_outlasts_those_that_nobody_uses(closed: list[str | None]):
    clients = Clients("http://127.0.0.1:1")
    async with clients.borrowed("streams") as streaming:
        for number in range(CLIENTS_MAX + 2):
            async with clients.borrowed(f"k{number}"):
                pass

        assert closed == ["k0", "k1", "k2"]
        async with clients.borrowed("streams") as again:
            assert again is streaming
    await clients.close()

    assert len(closed) == len(set(closed)) == CLIENTS_MAX + 3


async def test_more_clients_than_are_kept_close_once_unused(closed: list[str | None]):
    clients = Clients("http://127.0.0.1:1")
    async with AsyncExitStack() as stack:
        for number in range(CLIENTS_MAX + 5):
            await stack.enter_async_context(clients.borrowed(f"k{number}"))
        assert closed == []

    assert len(closed) == 5
    await clients.close()


async def test_what_a_key_may_do_is_asked_again_after_seconds(monkeypatch: pytest.MonkeyPatch):
    now_s, asked = 100.0, list[str]()

    async def get(self: Client, path: str, **_: object) -> dict[str, object]:
        asked.append(f"{self.address.key} {path}")
        return {"scopes": [len(asked)]}

    monkeypatch.setattr(Client, "get", get)
    clients = Clients("http://127.0.0.1:1", clock=lambda: now_s)
    async with clients.borrowed("a"), clients.borrowed("b"):
        first = [await clients.me_of(key) for key in ("a", "b", "a")]
        now_s += ME_KEPT_S + 0.1
        later = await clients.me_of("a")
    await clients.close()

    assert first == [{"scopes": [1]}, {"scopes": [2]}, {"scopes": [1]}] and later == {"scopes": [3]}
    assert asked == ["a /v1/me", "b /v1/me", "a /v1/me"]
