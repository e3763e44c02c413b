"""Send a server's requests with its token, and renew that before it ends or when it is refused."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable

import httpx2

from wayline.store import PostgresUnavailable
from wayline.tool_registry.adapters import oauth_flow
from wayline.tool_registry.adapters.authorization_table import AuthorizationTable, Secrets
from wayline.tool_registry.errors import NotBegun
from wayline.tool_registry.secret_keys import CannotOpen
from wayline.tool_registry.tool_servers import needs_login


class ServerAuth(httpx2.Auth):
    """Authenticates the requests to one server; what cannot be is not sent."""

    def __init__(
        self,
        table: AuthorizationTable,
        tenant: str,
        server: str,
        url: str,
        *,
        http: Callable[[], httpx2.AsyncClient],
        learn: Callable[[str], None],
    ) -> None:
        """`http` makes the client that tokens are renewed with; `learn` hears each token, which is to be hidden."""
        self._table = table
        self._tenant = tenant
        self._server = server
        self._url = url
        self._http = http
        self._learn = learn
        self._held: Secrets | None = None

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Send a request with the token, once more after a refusal. Raises ConnectError where nobody is logged in."""
        held = self._held
        if held is None or not oauth_flow.is_fresh(held):
            held = await self._current(request, refused=None)
        request.headers["Authorization"] = f"Bearer {held['access_token']}"
        answer = yield request
        if answer.status_code == httpx2.codes.UNAUTHORIZED:
            held = await self._current(request, refused=held["access_token"])
            request.headers["Authorization"] = f"Bearer {held['access_token']}"
            yield request

    async def _current(self, request: httpx2.Request, *, refused: str | None) -> Secrets:
        """Return usable tokens. Raises ConnectError: nothing was sent, or the server refused it."""
        try:
            held = await self._table.find(self._tenant, self._server)
            if (
                held is not None
                and held["url"] == self._url
                and (held["access_token"] == refused or not oauth_flow.is_fresh(held))
            ):
                async with self._http() as http:

                    async def refresh(now: Secrets) -> Secrets | None:
                        # Another replica may have renewed them while this one waited for its turn.
                        if now["access_token"] != refused and oauth_flow.is_fresh(now):
                            return now
                        return await oauth_flow.refreshed(http, now)

                    held = await self._table.renew(self._tenant, self._server, refresh)
        except (NotBegun, PostgresUnavailable, CannotOpen) as error:
            raise httpx2.ConnectError(f"its tokens cannot be renewed: {error}", request=request) from None
        # Tokens are for the URL that was logged in to: after a change of it they go nowhere.
        if held is None or held["url"] != self._url:
            self._held = None
            raise httpx2.ConnectError(needs_login(self._server), request=request)
        self._held = held
        for name in ("access_token", "refresh_token"):
            if held[name]:
                self._learn(held[name])
        return held
