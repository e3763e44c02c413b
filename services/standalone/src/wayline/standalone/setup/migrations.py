"""Bring the database and the bus to what this version needs; every line yielded is one thing that changed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any

import asyncpg
from nats.js import JetStreamContext

from wayline.chassis import Bus, BusSettings
from wayline.chassis.topology import Limits, declare
from wayline.standalone.setup.credentials import ADMIN
from wayline.standalone.setup.installation import DATABASE, GRAFANA, Place
from wayline.standalone.services import MEMBERS
from wayline.store import Queries, migrate

sql = Queries.load(files("wayline.standalone") / "queries.sql")


async def migrate_all(place: Place, limits: Limits) -> AsyncIterator[str]:
    """The database first: a service that hears the bus must find its tables."""
    async for said in migrate_database(place):
        yield said
    async for said in declare_streams(place, limits):
        yield said


async def migrate_database(place: Place) -> AsyncIterator[str]:
    """The schema and the role of every service that owns tables, and Grafana's role."""
    for member in MEMBERS:
        if member.schema is None:
            continue
        applied = await migrate(
            place.admin_dsn,
            schema=member.schema,
            role=member.role,
            password=place.credentials.passwords[member.identity],
            directory=member.migrations(),
            vector=member.vector,
        )
        for file in applied:
            yield f"schema {member.schema}: {file} applied"
    async for said in _let_grafana_read(place):
        yield said


async def declare_streams(place: Place, limits: Limits) -> AsyncIterator[str]:
    """The streams and consumers, as the topology has them."""
    async with administering(place) as js:
        async for said in declare(js, limits):
            yield said


@asynccontextmanager
async def administering(place: Place, *, wait_s: float | None = None) -> AsyncIterator[JetStreamContext]:
    """Open the streams of the bus as the identity that may declare them."""
    async with connected_admin(place, wait_s=wait_s) as bus:
        yield bus.js


@asynccontextmanager
async def connected_admin(place: Place, *, wait_s: float | None = None) -> AsyncIterator[Bus]:
    """Connect to the bus as the identity that may declare streams."""
    settings = BusSettings(nats_url=place.nats_url, nats_seed=place.seed_of(ADMIN))
    if wait_s is not None:
        settings = settings.model_copy(update={"connect_wait_s": wait_s})
    bus = await Bus.connect(settings, service=ADMIN, exit_when_closed=False)
    try:
        yield bus
    finally:
        await bus.close()


async def create_database(server_dsn: str) -> None:
    """Make the database of an embedded server unless it is there."""
    conn = await asyncpg.connect(server_dsn)
    try:
        if not await conn.fetchval(sql.find_database):
            await conn.execute(sql.create_database)
    finally:
        await conn.close()


async def _let_grafana_read(place: Place) -> AsyncIterator[str]:
    conn: Any = await asyncpg.connect(place.admin_dsn)
    try:
        await conn.execute(sql.lock_grafana)
        found = await conn.fetchrow(sql.find_grafana)
        statement = await conn.fetchval(sql.password_statement, found["present"], place.credentials.passwords[GRAFANA])
        await conn.execute(statement)
        await conn.execute(sql.grant_grafana)
        if not found["sees_all"]:
            await conn.execute(sql.limit_grafana)
            yield "role wayline_grafana: may read the schema tracing"
    finally:
        # Ends the session, and the lock with it.
        await conn.close()


__all__ = [
    "DATABASE",
    "administering",
    "connected_admin",
    "create_database",
    "declare_streams",
    "migrate_all",
    "migrate_database",
]
