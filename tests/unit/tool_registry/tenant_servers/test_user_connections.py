"""Connections of users: one a login, as many as may be, closed when idle."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import Any

import pytest

from wayline.store import PostgresUnavailable
from wayline.tool_registry.errors import NeedsLogin, NotBegun
from wayline.tool_registry.settings import Settings
from wayline.tool_registry.tenant_servers.user_connections import UserConnections

BEFORE, NOW = datetime(2026, 5, 1, tzinfo=UTC), datetime(2026, 5, 2, tzinfo=UTC)


class Connection:
    """A connection that notes when it is left."""

    def __init__(self, user_id: str) -> None:
        self.user_id = user_id
        self.tried = asyncio.Event()
        self.left = asyncio.Event()

    def start(self) -> None:
        self.tried.set()

    async def retire(self, grace_s: float) -> None:
        self.left.set()

    async def stop(self) -> None:
        self.left.set()


class Users:
    """Who is logged in, and which connections were opened."""

    def __init__(self, *users: str, **settings: Any) -> None:
        self.logged_in: dict[str, datetime] = dict.fromkeys(users, BEFORE)
        self.opened: list[Connection] = []
        self.connections = UserConnections(
            "bank", Settings(**settings), logged_in_at=self.logged_in_at, connect=self.connect
        )

    async def logged_in_at(self, user_id: str) -> datetime | None:
        return self.logged_in.get(user_id)

    def connect(self, user_id: str) -> Any:
        self.opened.append(Connection(user_id))
        return self.opened[-1]

    async def call(self, user_id: str | None) -> Any:
        async with self.connections.of(user_id) as server:
            return server


async def test_calls_of_one_login_share_a_connection():
    users = Users("alice", "bob")

    first, second, other = [await users.call(user) for user in ("alice", "alice", "bob")]

    assert first is second
    assert [one.user_id for one in users.opened] == ["alice", "bob"]
    assert other.user_id == "bob"


async def test_a_new_login_gets_a_new_connection():
    users = Users("alice")
    first = await users.call("alice")
    users.logged_in["alice"] = NOW

    second = await users.call("alice")

    await first.left.wait()
    assert second is not first
    assert not second.left.is_set()


@pytest.mark.parametrize("user_id", [None, "", "carol", "a\0b"])
async def test_nobodys_call_opens_no_connection(user_id: str | None):
    users = Users("alice")

    with pytest.raises(NeedsLogin):
        await users.call(user_id)

    assert users.opened == []


async def test_a_user_who_logged_out_leaves_the_connection():
    users = Users("alice")
    connection = await users.call("alice")
    users.logged_in.clear()

    with pytest.raises(NeedsLogin):
        await users.call("alice")

    await connection.left.wait()
    assert len(users.connections) == 0


async def test_the_longest_idle_connection_makes_room():
    users = Users("alice", "bob", "carol", user_connections_max=2)
    alice, bob = await users.call("alice"), await users.call("bob")
    await users.call("alice")

    await users.call("carol")

    await bob.left.wait()
    assert not alice.left.is_set()
    assert len(users.connections) == 2


async def test_busy_connections_make_no_room():
    users = Users("alice", "bob", "carol", user_connections_max=2)
    async with AsyncExitStack() as busy:
        for user in ("alice", "bob"):
            await busy.enter_async_context(users.connections.of(user))

        with pytest.raises(NotBegun, match="2 users call 'bank' at once"):
            await users.call("carol")

    assert not any(one.left.is_set() for one in users.opened)


async def test_an_idle_connection_is_closed_and_a_busy_one_kept():
    users = Users("alice", "bob", user_idle_s=0.01)
    async with users.connections.of("alice") as busy:
        idle = await users.call("bob")

        await idle.left.wait()

        assert not busy.left.is_set()
    await busy.left.wait()


async def test_a_retired_server_begins_no_call():
    users = Users("alice")
    connection = await users.call("alice")
    await users.connections.retire(1)

    with pytest.raises(NotBegun, match="changed or removed"):
        await users.call("alice")

    assert connection.left.is_set()
    assert len(users.opened) == 1


async def test_a_database_that_is_away_lets_no_call_begin():
    users = Users("alice")
    await users.call("alice")

    async def away(_: str) -> datetime | None:
        raise PostgresUnavailable(where="db.inside:5432", cause="refused")

    users.connections._logged_in_at = away

    with pytest.raises(NotBegun, match="cannot be found out") as refused:
        await users.call("alice")
    assert not isinstance(refused.value, NeedsLogin)
    assert "db.inside" not in str(refused.value)
