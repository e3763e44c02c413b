"""Renew tokens: one request at a time for each owner, in all replicas, while no database connection is held.

An authorization server that rotates refresh tokens takes each of them once. So what it answered is stored whatever
happens to those who asked for it, and tokens are given up only where it says that they are worth nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from wayline.chassis import keep_trying
from wayline.contracts import ids
from wayline.store import PostgresUnavailable
from wayline.tool_registry.errors import NotBegun
from wayline.tool_registry.logins.authorization_table import AuthorizationTable, ClaimedTokens, Secrets
from wayline.tool_registry.logins.token_owner import TokenOwner

log = structlog.get_logger()

CLAIM_WITHIN_S = 20.0
"""How long another replica is waited for that is renewing the tokens."""
RENEW_WITHIN_S = 20.0
"""How long one renewal may take, from its claim on: cut short, it loses what its authorization server has rotated."""
CLAIM_S = 30.0
"""How long a claim counts: longer than a renewal may take."""
LOOK_AGAIN_S = 0.2
"""How often it is looked whether another replica has renewed the tokens."""
STORE_WITHIN_S = 120.0
"""How long fresh tokens are held for a database that is away."""

Refresh = Callable[[Secrets], Awaitable[Secrets | None]]
"""Returns tokens that are fresh, or None where their authorization server has refused them for good."""


class TokenRenewals:
    """Renews tokens for all who ask at once by one request."""

    def __init__(self, table: AuthorizationTable) -> None:
        self._table = table
        self._running: dict[TokenOwner, asyncio.Task[Secrets | None]] = {}

    async def renew(self, owner: TokenOwner, refresh: Refresh) -> Secrets | None:
        """Return renewed tokens, or those that another one has renewed; None: there are none, or they are refused.

        A caller that is cancelled ends nothing. Raises NotBegun, PostgresUnavailable or CannotOpen.
        """
        running = self._running.get(owner)
        if running is None:
            running = asyncio.create_task(self._renewed(owner, refresh), name=f"renewing tokens of {owner.server}")
            self._running[owner] = running
            running.add_done_callback(lambda _: self._running.pop(owner, None))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            if running.cancelled():
                raise NotBegun("its tokens are not renewed: the registry is being stopped") from None
            raise

    async def close(self, *, within_s: float) -> None:
        """Let renewals end: an answer that is not stored loses the login."""
        if self._running:
            await asyncio.wait(self._running.values(), timeout=within_s)

    async def _renewed(self, owner: TokenOwner, refresh: Refresh) -> Secrets | None:
        claim = ids.new_id("claim")
        try:
            async with asyncio.timeout(CLAIM_WITHIN_S):
                held = await self._claimed(owner, claim)
            # The limit ends before anything is stored.
            async with asyncio.timeout(RENEW_WITHIN_S):
                fresh = None if held is None else await refresh(held.tokens) if held.ours else held.tokens
        except TimeoutError:
            await self._end(owner, claim)
            raise NotBegun("its authorization server has not answered in time") from None
        except BaseException:
            await self._end(owner, claim)
            raise
        if held is None or not held.ours:
            return fresh
        try:
            if fresh is held.tokens:
                return fresh
            return await keep_trying(
                "keep renewed tokens",
                lambda: self._table.change(owner, lambda now: _kept(now, before=held.tokens, fresh=fresh)),
                on=PostgresUnavailable,
                within_s=STORE_WITHIN_S,
            )
        finally:
            await self._end(owner, claim)

    async def _claimed(self, owner: TokenOwner, claim: str) -> ClaimedTokens | None:
        """Return the tokens once they are ours to renew, or once another replica has renewed them."""
        first: Secrets | None = None
        while True:
            found = await self._table.claim(owner, claim, for_s=CLAIM_S)
            if found is None or found.ours:
                return found
            first = first or found.tokens
            if found.tokens["access_token"] != first["access_token"]:
                return found
            await asyncio.sleep(LOOK_AGAIN_S)

    async def _end(self, owner: TokenOwner, claim: str) -> None:
        try:
            await self._table.end_claim(owner, claim)
        except PostgresUnavailable as error:
            log.warning("a claim on tokens runs out by itself", server=owner.server, why=error.why)


def _kept(now: Secrets, *, before: Secrets, fresh: Secrets | None) -> Secrets | None:
    """Return the tokens to keep: those of a login that came meanwhile, else the fresh ones with what was noted."""
    if now["access_token"] != before["access_token"]:
        return now
    return None if fresh is None else {**now, **fresh, "wanted_scope": now.get("wanted_scope")}
