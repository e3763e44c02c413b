"""Tokens of tenants' servers, and logins under way, in Postgres and encrypted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from hmac import compare_digest
from typing import Any

import structlog

from wayline.contracts.errors import Conflict, Reject
from wayline.contracts.server_logins import ServerLogin
from wayline.store import Record, Store
from wayline.store.sealing import CannotOpen, Sealed
from wayline.tool_registry.logins.token_owner import TokenOwner
from wayline.tool_registry.secrets.seal_pages import Place, seal_pages
from wayline.tool_registry.secrets.secret_keys import SecretKeys

log = structlog.get_logger()

LOGIN_S = 600.0
LOGINS_MAX = 1_000
"""Of one tenant, under way."""
USERS_MAX = 10_000
"""Users that may be logged in to one server."""

Secrets = dict[str, Any]


@dataclass(frozen=True)
class ClaimedTokens:
    """Tokens, and whether it is this replica that renews them now."""

    tokens: Secrets
    ours: bool


class AuthorizationTable:
    """One row an owner of tokens of a server, and one a login under way."""

    def __init__(self, store: Store, keys: SecretKeys) -> None:
        self._store = store
        self._sql = store.sql
        self._keys = keys

    async def begin(self, owner: TokenOwner, state: str, login: Secrets) -> None:
        """Keep a login until its state comes back, which is stored as a hash. Raises Conflict."""
        tenant, hashed = owner.tenant, _hash(state)
        if owner.user_id and await self._store.fetchval(tenant, self._sql.logged_in_users, *owner.row) >= USERS_MAX:
            raise Conflict(f"{USERS_MAX} users are logged in to {owner.server}: forget those that have gone")
        sealed = self._keys.seal(login, tenant=tenant, owner=owner.login_bound_to(hashed))
        row = (tenant, hashed, owner.server, owner.user_id, sealed.key_id, sealed.data, LOGIN_S, LOGINS_MAX)
        if await self._store.fetchval(tenant, self._sql.begin_login, *row) is None:
            raise Conflict(f"{LOGINS_MAX} logins of this tenant are under way: finish one, or wait ten minutes")

    async def login(self, tenant: str, state: str) -> tuple[TokenOwner, Secrets]:
        """Return the owner and the login that a state belongs to. Raises Reject."""
        hashed = _hash(state)
        return self._login(tenant, hashed, await self._store.fetchrow(tenant, self._sql.login, tenant, hashed))

    async def bind(self, tenant: str, state: str, *, browser: str) -> Secrets:
        """Bind a login to the browser that goes on with it, and return the login. Raises Reject."""
        hashed = _hash(state)
        row = await self._store.fetchrow(tenant, self._sql.open_login, tenant, hashed, _hash(browser))
        return self._login(tenant, hashed, row)[1]

    async def take(self, tenant: str, state: str, *, browser: str | None) -> tuple[TokenOwner, Secrets]:
        """Return the owner and the login that a state belongs to, once, to the browser it is bound to. Raises Reject.

        Otherwise who begins a login could have another person consent, and keep that person's tokens.
        """
        hashed = _hash(state)
        row = await self._store.fetchrow(tenant, self._sql.take_login, tenant, hashed)
        found = self._login(tenant, hashed, row)
        bound_to = None if row is None else row["browser_sha256"]
        if browser is None or bound_to is None or not compare_digest(bound_to, _hash(browser)):
            raise Reject(
                "this login was begun in another browser: begin it again, and open its link in the browser that "
                "you log in with",
                code="another_browser",
                status=400,
            )
        return found

    def _login(self, tenant: str, hashed: str, row: Record | None) -> tuple[TokenOwner, Secrets]:
        if row is None or not row["valid"]:
            raise Reject(
                "this login is unknown, over, or was finished before: begin it again", code="invalid_state", status=400
            )
        owner = TokenOwner(tenant, row["server"], row["user_id"])
        sealed = Sealed(row["key_id"], row["sealed"])
        return owner, self._keys.open(sealed, tenant=tenant, owner=owner.login_bound_to(hashed))

    async def put(self, owner: TokenOwner, held: Secrets) -> None:
        """Keep tokens, and have every replica connect with them."""
        sealed = self._seal(owner, held)
        row = (*owner.row, sealed.key_id, sealed.data)
        await self._store.fetchval(owner.tenant, self._sql.put_authorization, *row)

    async def find(self, owner: TokenOwner) -> Secrets | None:
        """Return an owner's tokens; None: there are none, or they are refused. Raises CannotOpen."""
        return self._usable(owner, await self._store.fetchrow(owner.tenant, self._sql.authorization, *owner.row))

    async def asked_scope(self, owner: TokenOwner) -> str | None:
        """Return the scope that an owner's next login is to ask for; None: the scope that the server offers."""
        row = await self._store.fetchrow(owner.tenant, self._sql.authorization, *owner.row)
        try:
            held = None if row is None else self._open(owner, row)
        except CannotOpen:
            return None
        return None if held is None else held.get("wanted_scope")

    async def logged_in_at(self, owner: TokenOwner) -> datetime | None:
        """Return when an owner logged in; None: it has no login, or the tokens are renewed no more."""
        return await self._store.fetchval(owner.tenant, self._sql.logged_in_at, *owner.row)

    async def logins(
        self, tenant: str, server: str, *, user_id: str | None, after: str, limit: int
    ) -> list[ServerLogin]:
        """Return the users who are logged in to a server, by their ids."""
        row = (tenant, server, after, user_id, limit)
        return [ServerLogin(**one) for one in await self._store.fetch(tenant, self._sql.logins_of_server, *row)]

    async def claim(self, owner: TokenOwner, claim: str, *, for_s: float) -> ClaimedTokens | None:
        """Return an owner's tokens, and whether they are now ours to renew; None: there are none, or they are refused.

        Raises CannotOpen.
        """
        row = await self._store.fetchrow(owner.tenant, self._sql.claim_authorization, *owner.row, claim, for_s)
        held = self._usable(owner, row)
        return None if row is None or held is None else ClaimedTokens(held, ours=row["claimed"])

    async def end_claim(self, owner: TokenOwner, claim: str) -> None:
        """Let others renew the tokens."""
        await self._store.fetchval(owner.tenant, self._sql.end_claim, *owner.row, claim)

    async def change(self, owner: TokenOwner, change: Callable[[Secrets], Secrets | None]) -> Secrets | None:
        """Change tokens by `change`, which asks nobody, and return them; None: they are refused for good."""
        async with self._store.tenant(owner.tenant) as conn:
            held = self._usable(owner, await conn.fetchrow(self._sql.lock_authorization, *owner.row))
            if held is None:
                return None
            fresh = change(held)
            if fresh is None:
                await conn.execute(self._sql.refuse_authorization, *owner.row)
            elif fresh is not held:
                sealed = self._seal(owner, fresh)
                await conn.execute(self._sql.renew_authorization, *owner.row, sealed.key_id, sealed.data)
            return fresh

    async def delete(self, owner: TokenOwner) -> Secrets | None:
        """Forget tokens and return them; None: there are none that could be read."""
        row = await self._store.fetchrow(owner.tenant, self._sql.delete_authorization, *owner.row)
        return None if row is None else self._readable(owner, row)

    async def delete_user(self, tenant: str, user_id: str) -> dict[str, Secrets | None]:
        """Forget a user's tokens of every server and return them by server; None: they cannot be read."""
        rows = await self._store.fetch(tenant, self._sql.delete_authorizations_of_user, tenant, user_id)
        return {row["server"]: self._readable(TokenOwner(tenant, row["server"], user_id), row) for row in rows}

    async def seal_again(self, *, at_most: int) -> int:
        """Encrypt with the newest key some of what an older one encrypted, and return how many tokens that were."""
        if not (older := self._keys.older):
            return 0

        async def read(rows: int, after: Place) -> Sequence[Record]:
            async with self._store.system() as conn:
                return await conn.fetch(self._sql.authorizations_of_older_keys, older, rows, *after)

        async def seal(row: Record) -> bool:
            owner = TokenOwner(row["tenant"], row["server"], row["user_id"])
            fresh = self._seal(owner, self._open(owner, row))
            values = (*owner.row, row["sealed"], fresh.key_id, fresh.data)
            return await self._store.fetchval(owner.tenant, self._sql.seal_authorization, *values) is not None

        def place(row: Record) -> Place:
            return (row["tenant"], row["server"], row["user_id"])

        return await seal_pages(read, seal, place, first=("", "", ""), at_most=at_most)

    def _usable(self, owner: TokenOwner, row: Record | None) -> Secrets | None:
        return None if row is None or row["refused"] else self._open(owner, row)

    def _readable(self, owner: TokenOwner, row: Record) -> Secrets | None:
        try:
            return self._open(owner, row)
        except CannotOpen:
            return None

    def _seal(self, owner: TokenOwner, held: Secrets) -> Sealed:
        return self._keys.seal(held, tenant=owner.tenant, owner=owner.bound_to)

    def _open(self, owner: TokenOwner, row: Record) -> Secrets:
        return self._keys.open(Sealed(row["key_id"], row["sealed"]), tenant=owner.tenant, owner=owner.bound_to)


def _hash(state: str) -> str:
    return sha256(state.encode()).hexdigest()
