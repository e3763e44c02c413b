"""Approved and waiting definitions of tenants' servers in Postgres."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from wayline.contracts.errors import Conflict
from wayline.contracts.mcp_servers import DefinitionChange, ValueChange
from wayline.store import PostgresUnavailable, Record, Store
from wayline.tool_registry.definitions.definitions import (
    INSTRUCTIONS,
    Definition,
    PinnedAway,
    PinnedTool,
    Pins,
    differences,
    fingerprint_of_all,
    require_moderate,
    review,
)
from wayline.tool_registry.definitions.visible_text import visible
from wayline.tool_registry.errors import NotBegun

log = structlog.get_logger()

CHANGES_SHOWN_MAX = 100
"""In one answer: each is compared anew."""
UNUSABLE_MAX = 500
"""Tools that cannot be called and are still found by a search."""
DEFINITION_READ_MAX_BYTES = 20_000


class DefinitionTable:
    """One row a tool, and one for a server's instructions."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._sql = store.sql

    async def pins(self, tenant: str, server: str) -> Pins | None:
        """Return a server's fingerprints; None: there is no such server."""
        rows = await self._store.fetch(tenant, self._sql.pins, tenant, server)
        if not rows:
            return None
        known = [row for row in rows if row["tool"] is not None]
        return Pins(
            begun=rows[0]["begun"],
            shown=rows[0]["shown_sha256"],
            approved={row["tool"]: row["approved_sha256"] for row in known if row["approved_sha256"]},
            waiting={row["tool"]: row["waiting_sha256"] for row in known if row["waiting_sha256"]},
        )

    async def approved(self, tenant: str, server: str) -> list[str] | None:
        """Return the approved definitions of a server's tools that wait for nothing; None: it was never reached."""
        rows = await self._store.fetch(tenant, self._sql.approved_definitions, tenant, server)
        return [row["approved"] for row in rows if row["approved"] is not None] if rows else None

    async def pin_first(self, tenant: str, server: str, offered: Sequence[Definition]) -> bool:
        """Approve what a server offers the first time; return False where that has been done."""
        name = await self._store.fetchval(tenant, self._sql.pin_first, tenant, server, *_columns(offered))
        return name is not None

    async def hold(self, tenant: str, server: str, offered: Sequence[Definition]) -> None:
        """Keep definitions until a person approves them."""
        await self._store.execute(tenant, self._sql.hold_definitions, tenant, server, *_columns(offered))

    async def release(self, tenant: str, server: str, names: Sequence[str]) -> None:
        """Forget waiting definitions that are offered no more, or are as they were approved."""
        await self._store.execute(tenant, self._sql.release_definitions, tenant, server, list(names))

    async def approve(self, tenant: str, server: str, fingerprints: Sequence[str]) -> None:
        """Approve waiting definitions, all or none. Raises Conflict where one of them waits no more."""
        wanted = set(fingerprints)
        async with self._store.tenant(tenant) as conn:
            rows = await conn.fetch(self._sql.lock_definitions, tenant, server)
            there = {row["waiting_sha256"] for row in rows} | {row["approved_sha256"] for row in rows}
            if lost := wanted - there:
                raise Conflict(
                    f"{len(lost)} of {len(wanted)} definitions to approve wait no more, because the server offers "
                    "others now: look at the differences again, and approve those; nothing was approved"
                )
            await conn.execute(self._sql.approve_definitions, tenant, server, list(wanted))

    async def changes(self, tenant: str, server: str, shown_as: Sequence[str] = ()) -> tuple[DefinitionChange, ...]:
        """Return definitions of a server that wait for approval, each with its differences: those named, or the first.

        `shown_as`: names of tools as they are shown, hidden characters escaped.
        """
        names = await self._waiting_names(tenant, server, shown_as) if shown_as else None
        sought = (tenant, server, CHANGES_SHOWN_MAX, names)
        rows = await self._store.fetch(tenant, self._sql.waiting_definitions, *sought)
        return tuple(_change(row) for row in rows)

    async def _waiting_names(self, tenant: str, server: str, shown_as: Sequence[str]) -> list[str]:
        """Return the names of tools that wait for approval and are shown as one of some names."""
        rows = await self._store.fetch(tenant, self._sql.waiting_tools, tenant, server)
        return [row["tool"] for row in rows if visible(row["tool"]) in shown_as]

    async def of(self, tenant: str, server: str) -> list[PinnedTool]:
        """Return a server's tools as they were approved and as they wait."""
        rows = await self._store.fetch(tenant, self._sql.pinned_tools, tenant, server)
        return [PinnedTool(row["tool"], row["approved_sha256"], row["waiting_sha256"], row["waiting"]) for row in rows]

    async def unusable(self, tenant: str) -> list[PinnedAway]:
        """Return the tools of disabled servers, and those that wait for approval."""
        limits = (UNUSABLE_MAX, DEFINITION_READ_MAX_BYTES)
        rows = await self._store.fetch(tenant, self._sql.unusable_tools, tenant, *limits)
        return [PinnedAway(row["server"], row["tool"], row["definition"], row["enabled"], row["waits"]) for row in rows]

    async def waiting(self, tenant: str) -> dict[str, int]:
        """Return how many definitions wait for approval, by server."""
        rows = await self._store.fetch(tenant, self._sql.waiting_counts, tenant)
        return {row["server"]: row["waiting"] for row in rows}


class ServerPins:
    """The pinned definitions of one server, compared with what it offers each time that it is asked."""

    def __init__(self, table: DefinitionTable, tenant: str, server: str) -> None:
        self._table = table
        self._tenant = tenant
        self._server = server
        self._last: Pins | None = None
        """As they were read last: while Postgres is away, what was approved stays approved."""

    async def approved(self) -> list[str] | None:
        """Return the approved definitions of the server's tools; None: it was never reached."""
        return await self._table.approved(self._tenant, self._server)

    async def withheld(self, offered: Sequence[Definition]) -> dict[str, str]:
        """Return why each tool that must not be used may not be, by name. Raises TooMuchOffered or NotBegun."""
        require_moderate(offered)
        try:
            return await self._compare(offered)
        except PostgresUnavailable:
            if self._last is None:
                raise NotBegun("its definitions cannot be compared with those approved: Postgres is away") from None
            return review(offered, self._last).withheld

    async def _compare(self, offered: Sequence[Definition]) -> dict[str, str]:
        pins = await self._pins()
        if not pins.begun:
            # What was shown is approved. Where a server offers something else by now, all of it waits for a person.
            is_shown = pins.shown is None or pins.shown == fingerprint_of_all(offered)
            await self._table.pin_first(self._tenant, self._server, offered if is_shown else ())
            # What another replica pinned a moment before counts.
            pins = await self._pins()
        found = review(offered, pins)
        if found.hold:
            log.warning("definitions wait for approval", server=self._server, definitions=len(found.hold))
            await self._table.hold(self._tenant, self._server, found.hold)
        if found.release:
            await self._table.release(self._tenant, self._server, found.release)
        return found.withheld

    async def _pins(self) -> Pins:
        pins = await self._table.pins(self._tenant, self._server)
        if pins is None:
            raise NotBegun("it was removed")
        if pins.begun:
            self._last = pins
        return pins


class UserPins(ServerPins):
    """The approved definitions of a server, compared with what it offers one user, of which nothing is kept."""

    async def approved(self) -> list[str] | None:
        """Return nothing: which tools there are is what the tenant's connection says."""
        return None

    async def _compare(self, offered: Sequence[Definition]) -> dict[str, str]:
        # Instructions are read from the tenant's connection alone.
        return review([one for one in offered if one.name != INSTRUCTIONS], await self._pins()).withheld


def _columns(offered: Sequence[Definition]) -> tuple[list[str], list[str], list[str]]:
    first = {one.name: one for one in reversed(offered)}.values()
    return [one.name for one in first], [one.sha256 for one in first], [one.text for one in first]


def _change(row: Record) -> DefinitionChange:
    new = row["approved_sha256"] is None
    return DefinitionChange(
        tool=visible(row["tool"]),
        kind="instructions" if row["tool"] == INSTRUCTIONS else "new" if new else "changed",
        sha256=row["waiting_sha256"],
        approved_sha256=row["approved_sha256"],
        since=row["waiting_since"],
        differences=tuple(
            ValueChange(path=one.path, before=one.before, after=one.after)
            for one in differences(row["approved"], row["waiting"])
        ),
    )
