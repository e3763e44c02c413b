"""Clients of many keys: as few connections are kept as may be, and none is taken from a request that uses it."""

from __future__ import annotations

from contextlib import AsyncExitStack

import pytest

from wayline.client.client import Client
from wayline.console.access import visitor
from wayline.console.access.visitor import CLIENTS_MAX, Clients


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
