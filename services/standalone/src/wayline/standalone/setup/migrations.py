"""Bring the database and the bus to this version; every yielded line is one change."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any

import asyncpg
from nats.js import JetStreamContext

from wayline.chassis import Bus, BusSettings
from wayline.chassis.declare import declare
from wayline.chassis.stream_limits import Limits
from wayline.standalone.services import MEMBERS
from wayline.standalone.setup.credentials import ADMIN
from wayline.standalone.setup.installation import DATABASE, GRAFANA, GRAFANA_ROLE, ServerAccess
from wayline.store import Queries, create_login, migrate
from wayline.store.connecting import connect_or_explain

sql = Queries.load(files("wayline.standalone") / "queries.sql")


async def migrate_all(access: ServerAccess, limits: Limits, *, allow_shrink: bool = False) -> AsyncIterator[str]:
    """Migrate the database, then the bus: a service that receives messages must find its tables. Raises WouldShrink."""
    async for change in migrate_database(access):
        yield change
    async for change in declare_streams(access, limits, allow_shrink=allow_shrink):
        yield change


async def migrate_database(access: ServerAccess) -> AsyncIterator[str]:
    """Migrate the schema and the role of every service that owns tables, and Grafana's role."""
    for member in MEMBERS:
        if member.schema is None:
            continue
        applied = await migrate(
            access.admin_dsn,
            schema=member.schema,
            role=member.role,
            login=access.credentials.role_of(member.role),
            password=access.credentials.passwords[member.identity],
            directory=member.migrations(),
            vector=member.vector,
        )
        for file in applied:
            yield f"schema {member.schema}: {file} applied"
    async for change in _let_grafana_read(access):
        yield change


async def declare_streams(access: ServerAccess, limits: Limits, *, allow_shrink: bool = False) -> AsyncIterator[str]:
    """Declare the streams and consumers of the topology."""
    async with administering(access) as js:
        async for change in declare(js, limits, allow_shrink=allow_shrink):
            yield change


@asynccontextmanager
async def administering(access: ServerAccess, *, wait_s: float | None = None) -> AsyncIterator[JetStreamContext]:
    """Open JetStream as the identity that may declare streams."""
    async with connected_admin(access, wait_s=wait_s) as bus:
        yield bus.js


@asynccontextmanager
async def connected_admin(access: ServerAccess, *, wait_s: float | None = None) -> AsyncIterator[Bus]:
    """Connect to the bus as the identity that may declare streams."""
    settings = BusSettings(nats_url=access.nats_url, nats_seed=access.seed_of(ADMIN))
    if wait_s is not None:
        settings = settings.model_copy(update={"connect_wait_s": wait_s})
    bus = await Bus.connect(settings, service=ADMIN, exit_when_closed=False)
    try:
        yield bus
    finally:
        await bus.close()


async def create_database(server_dsn: str) -> None:
    """Create the database of an embedded server unless it exists."""
    conn = await asyncpg.connect(server_dsn)
    try:
        if not await conn.fetchval(sql.find_database):
            await conn.execute(sql.create_database)
    finally:
        await conn.close()


async def _let_grafana_read(access: ServerAccess) -> AsyncIterator[str]:
    conn: Any = await connect_or_explain(access.admin_dsn)
    try:
        await conn.execute(sql.lock_grafana)
        login = access.credentials.role_of(GRAFANA_ROLE)
        if await create_grafana(conn, login=login, password=access.credentials.passwords[GRAFANA]):
            yield f"role {login}: may read the schema tracing"
    finally:
        # Ends the session, and the lock with it.
        await conn.close()


async def create_grafana(conn: Any, *, login: str, password: str) -> bool:
    """Let Grafana log in by a role that may only read; return whether it could not before."""
    await create_login(conn, role=GRAFANA_ROLE, login=login, password=password)
    await conn.execute(sql.grant_grafana)
    if await conn.fetchval(sql.grafana_sees_all, login):
        return False
    for row in await conn.fetch(sql.limit_grafana, login):
        await conn.execute(row["statement"])
    return True


__all__ = [
    "DATABASE",
    "administering",
    "connected_admin",
    "create_database",
    "create_grafana",
    "declare_streams",
    "migrate_all",
    "migrate_database",
]
