"""What the registry does with logins to servers that need OAuth."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode, urlsplit

from wayline.contracts.errors import Conflict, NotFound
from wayline.contracts.server_logins import (
    AuthorizationForgotten,
    AuthorizationUrl,
    AuthorizeServer,
    FinishAuthorization,
    ForgetAuthorization,
    ForgetUser,
    GetLogin,
    ListLogins,
    LoginPage,
    LoginView,
    OpenLogin,
    ServerAuthorized,
    UserForgotten,
)
from wayline.tool_registry.connection.mcp_library import load
from wayline.tool_registry.logins.authorization_table import AuthorizationTable
from wayline.tool_registry.logins.token_owner import TokenOwner
from wayline.tool_registry.secrets.secret_keys import require_key
from wayline.tool_registry.tenant_servers.server_table import ServerTable

if TYPE_CHECKING:
    from httpx2 import AsyncClient

OPENS = "opens"
"""In a login that is begun: the page of the authorization server where a person consents."""
LOGIN_WITHIN_S = 45.0
"""How long beginning or finishing a login may take, with all that is asked of the authorization server."""


@dataclass(frozen=True)
class AuthorizationHandlers:
    """One coroutine a message."""

    servers: ServerTable
    table: AuthorizationTable
    http: Callable[[str], AbstractAsyncContextManager[AsyncClient]]
    """Makes the client of all requests of a tenant's login."""
    changed: Callable[[str], Awaitable[None]]
    """Has every replica connect anew to the servers of a tenant."""

    async def authorize(self, ask: AuthorizeServer) -> AuthorizationUrl:
        """Begin a login and return the URL that a person opens. Raises NotFound, Conflict or CannotLogIn."""
        await load()
        from wayline.tool_registry.logins import oauth_flow

        saved = await self.servers.find(ask.tenant, ask.name)
        if saved is None:
            raise NotFound("server", ask.name)
        config = self.servers.whole(saved)
        if config.oauth is None or config.url is None:
            raise Conflict(f"{ask.name} has no `oauth`: save it with that first")
        if ask.user_id is not None and config.oauth.credentials == "tenant":
            raise Conflict(f'{ask.name} has one login for all: save it with `oauth.credentials` "user" first')
        require_key({"oauth": {}}, self.servers.newest_key)
        owner = TokenOwner(ask.tenant, ask.name, ask.user_id or "")
        async with _limited(ask.name), self.http(ask.tenant) as http:
            url, state, login = await oauth_flow.begin(
                http,
                oauth_flow.LoginRequest(
                    tenant=ask.tenant,
                    url=config.url,
                    oauth=config.oauth,
                    redirect_uri=ask.redirect_uri,
                    client_metadata_url=ask.client_metadata_url,
                    wanted_scope=await self.table.asked_scope(owner),
                ),
            )
        await self.table.begin(owner, state, login | {OPENS: url})
        # A gateway of before sends the browser on itself, and its login cannot be finished: nothing binds it.
        return AuthorizationUrl(url=url if ask.start_uri is None else f"{ask.start_uri}?{urlencode({'state': state})}")

    async def describe(self, ask: GetLogin) -> LoginView:
        """Return what a login that is begun is for. Raises Reject."""
        owner, login = await self.table.login(ask.tenant, ask.state)
        host = urlsplit(login.get(OPENS, "")).hostname or ""
        return LoginView(name=owner.server, user_id=owner.user_id or None, authorization_server=host)

    async def open(self, ask: OpenLogin) -> AuthorizationUrl:
        """Bind a login to a browser, and return the page of the authorization server. Raises Reject."""
        login = await self.table.bind(ask.tenant, ask.state, browser=ask.browser)
        return AuthorizationUrl(url=login[OPENS])

    async def finish(self, ask: FinishAuthorization) -> ServerAuthorized:
        """Exchange the code of a login for tokens. Raises Reject or CannotLogIn."""
        await load()
        from wayline.tool_registry.logins import oauth_flow

        # Before all else: a state counts once, also where the login fails.
        owner, login = await self.table.take(ask.tenant, ask.state, browser=ask.browser)
        if ask.code is None:
            raise oauth_flow.CannotLogIn(f"{owner.server} is not logged in: the authorization server gave no code")
        async with _limited(owner.server), self.http(ask.tenant) as http:
            held = await oauth_flow.finish(http, login, code=ask.code, iss=ask.iss)
        await self.table.put(owner, held)
        if not owner.user_id:
            await self.changed(ask.tenant)
        return ServerAuthorized(name=owner.server, user_id=owner.user_id or None)

    async def forget(self, ask: ForgetAuthorization) -> AuthorizationForgotten:
        """Forget a server's tokens, and revoke them where that is possible."""
        await load()
        from wayline.tool_registry.logins import oauth_flow

        held = await self.table.delete(TokenOwner(ask.tenant, ask.name, ask.user_id or ""))
        if held is None:
            return AuthorizationForgotten(forgotten=False)
        if ask.user_id is None:
            await self.changed(ask.tenant)
        async with self.http(ask.tenant) as http:
            return AuthorizationForgotten(forgotten=True, revoked=await oauth_flow.revoke(http, held))

    async def forget_user(self, ask: ForgetUser) -> UserForgotten:
        """Forget a user's tokens of every server, and revoke them where that is possible."""
        await load()
        from wayline.tool_registry.logins import oauth_flow

        held = await self.table.delete_user(ask.tenant, ask.user_id)
        readable = {server: tokens for server, tokens in held.items() if tokens is not None}
        async with self.http(ask.tenant) as http:
            done = await asyncio.gather(*(oauth_flow.revoke(http, tokens) for tokens in readable.values()))
        revoked = tuple(sorted(server for server, ok in zip(readable, done, strict=True) if ok))
        return UserForgotten(servers=tuple(sorted(held)), revoked=revoked)

    async def list(self, ask: ListLogins) -> LoginPage:
        """Say which users are logged in to a server. Raises NotFound."""
        if await self.servers.find(ask.tenant, ask.name) is None:
            raise NotFound("server", ask.name)
        found = await self.table.logins(
            ask.tenant, ask.name, user_id=ask.user_id, after=ask.cursor or "", limit=ask.limit + 1
        )
        page = tuple(found[: ask.limit])
        return LoginPage(logins=page, next_cursor=page[-1].user_id if len(found) > ask.limit else None)


@asynccontextmanager
async def _limited(server: str) -> AsyncIterator[None]:
    """Yield for as long as a login may take. Raises Conflict."""
    try:
        async with asyncio.timeout(LOGIN_WITHIN_S):
            yield
    except TimeoutError:
        raise Conflict(f"{server}: its authorization server has not answered within {LOGIN_WITHIN_S:g} s") from None
