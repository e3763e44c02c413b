"""What the registry does with logins to servers that need OAuth."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wayline.contracts.errors import Conflict, NotFound
from wayline.contracts.mcp_servers import (
    AuthorizationForgotten,
    AuthorizationUrl,
    AuthorizeServer,
    FinishAuthorization,
    ForgetAuthorization,
    ServerAuthorized,
)
from wayline.tool_registry.adapters.authorization_table import AuthorizationTable
from wayline.tool_registry.adapters.mcp_library import load
from wayline.tool_registry.adapters.server_table import ServerTable
from wayline.tool_registry.saved_servers import require_key

if TYPE_CHECKING:
    from httpx2 import AsyncClient


@dataclass(frozen=True)
class AuthorizationHandlers:
    """One coroutine a message."""

    servers: ServerTable
    table: AuthorizationTable
    http: Callable[[], AbstractAsyncContextManager[AsyncClient]]
    """Makes the client of all requests of a login."""
    changed: Callable[[str], Awaitable[None]]
    """Has every replica connect anew to the servers of a tenant."""

    async def authorize(self, ask: AuthorizeServer) -> AuthorizationUrl:
        """Begin a login and return the URL that a person opens. Raises NotFound, Conflict or CannotLogIn."""
        await load()
        from wayline.tool_registry.adapters import oauth_flow

        saved = await self.servers.find(ask.tenant, ask.name)
        if saved is None:
            raise NotFound("server", ask.name)
        config = self.servers.whole(saved)
        if config.oauth is None or config.url is None:
            raise Conflict(f"{ask.name} has no `oauth`: save it with that first")
        require_key({"oauth": {}}, self.servers.newest_key)
        async with self.http() as http:
            url, state, login = await oauth_flow.begin(
                http, config.url, config.oauth, redirect_uri=ask.redirect_uri, tenant=ask.tenant
            )
        await self.table.begin(ask.tenant, ask.name, state, login)
        return AuthorizationUrl(url=url)

    async def finish(self, ask: FinishAuthorization) -> ServerAuthorized:
        """Exchange the code of a login for tokens. Raises Reject or CannotLogIn."""
        await load()
        from wayline.tool_registry.adapters import oauth_flow

        # Before all else: whatever comes of it, a state counts once.
        name, login = await self.table.take(ask.tenant, ask.state)
        if ask.code is None:
            raise oauth_flow.CannotLogIn(f"{name} is not logged in: the authorization server gave no code")
        async with self.http() as http:
            held = await oauth_flow.finish(http, login, code=ask.code, iss=ask.iss)
        await self.table.put(ask.tenant, name, held)
        await self.changed(ask.tenant)
        return ServerAuthorized(name=name)

    async def forget(self, ask: ForgetAuthorization) -> AuthorizationForgotten:
        """Forget a server's tokens, and revoke them where that is possible."""
        await load()
        from wayline.tool_registry.adapters import oauth_flow

        held = await self.table.delete(ask.tenant, ask.name)
        if held is None:
            return AuthorizationForgotten(forgotten=False)
        await self.changed(ask.tenant)
        async with self.http() as http:
            return AuthorizationForgotten(forgotten=True, revoked=await oauth_flow.revoke(http, held))
