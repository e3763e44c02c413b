"""Send a server's requests with its token, and renew that before it ends or when it is refused."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable

import httpx2

from wayline.store import PostgresUnavailable
from wayline.tool_registry.adapters.oauth import NEEDS_SCOPE, oauth_flow
from wayline.tool_registry.adapters.tables.authorization_table import AuthorizationTable, Secrets
from wayline.tool_registry.errors import NotBegun
from wayline.tool_registry.secret_keys import CannotOpen
from wayline.tool_registry.token_owner import TokenOwner
from wayline.tool_registry.tools.tool_servers import needs_login, needs_scope


class ScopeRefusals(httpx2.AsyncBaseTransport):
    """Answers a call with an error of its own where the server wants a token for more.

    An exception would end the connection, and with it the calls beside this one.
    """

    def __init__(self, inner: httpx2.AsyncBaseTransport, message: str) -> None:
        self._inner = inner
        self._error = {"jsonrpc": "2.0", "id": None, "error": {"code": NEEDS_SCOPE, "message": message}}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request."""
        answer = await self._inner.handle_async_request(request)
        if not oauth_flow.lacks_scope(answer):
            return answer
        await answer.aclose()
        challenge = {"WWW-Authenticate": answer.headers["WWW-Authenticate"]}
        return httpx2.Response(answer.status_code, headers=challenge, json=self._error)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()


class ServerAuth(httpx2.Auth):
    """Authenticates the requests to one server; what cannot be is not sent."""

    def __init__(
        self,
        table: AuthorizationTable,
        owner: TokenOwner,
        url: str,
        *,
        http: Callable[[], httpx2.AsyncClient],
        add_secret: Callable[[str], None],
        scope_is_fixed: bool = False,
    ) -> None:
        """Take what the requests of one owner need.

        `http` makes the client that tokens are renewed with. `add_secret` is called with each token, to hide it.
        With `scope_is_fixed` logins ask for the configured scope alone, also where the server wants more.
        """
        self._table = table
        self._owner = owner
        self._url = url
        self._http = http
        self._add_secret = add_secret
        self._scope_is_fixed = scope_is_fixed
        self._needs_scope = needs_scope(owner.server, owner.user_id or None, fixed=scope_is_fixed)
        self._held: Secrets | None = None

    def explaining(self, transport: httpx2.AsyncBaseTransport) -> httpx2.AsyncBaseTransport:
        """Return a transport that answers a refusal for want of scope with what to do."""
        return ScopeRefusals(transport, self._needs_scope)

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Send a request with the token, once more after a refusal. Raises ConnectError without a login."""
        held = self._held
        if held is None or not oauth_flow.is_fresh(held):
            held = await self._current(request, refused=None)
        request.headers["Authorization"] = f"Bearer {held['access_token']}"
        answer = yield request
        if answer.status_code == httpx2.codes.UNAUTHORIZED:
            held = await self._current(request, refused=held["access_token"])
            request.headers["Authorization"] = f"Bearer {held['access_token']}"
            answer = yield request
            if answer.status_code == httpx2.codes.UNAUTHORIZED:
                await self._refuse(request, held)
        if oauth_flow.lacks_scope(answer):
            await self._want_scope(request, held, answer)

    async def _current(self, request: httpx2.Request, *, refused: str | None) -> Secrets:
        """Return usable tokens. Raises ConnectError: nothing was sent, or the server refused it."""
        try:
            held = await self._table.find(self._owner)
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

                    held = await self._table.renew(self._owner, refresh)
        except (NotBegun, PostgresUnavailable, CannotOpen) as error:
            raise httpx2.ConnectError(f"its tokens cannot be renewed: {_why(error)}", request=request) from None
        # Tokens are for the URL that was logged in to: after a change of it they go nowhere.
        if held is None or held["url"] != self._url:
            self._held = None
            raise self._login_needed(request)
        self._held = held
        for name in ("access_token", "refresh_token"):
            if held[name]:
                self._add_secret(held[name])
        return held

    async def _refuse(self, request: httpx2.Request, held: Secrets) -> None:
        """Give tokens up that are refused as soon as they are new: the server trusts another authorization server now.

        Raises ConnectError.
        """

        async def refuse(now: Secrets) -> Secrets | None:
            return None if now["access_token"] == held["access_token"] else now

        await self._noted(request, refuse)
        self._held = None
        raise self._login_needed(request)

    async def _want_scope(self, request: httpx2.Request, held: Secrets, answer: httpx2.Response) -> None:
        """Have the next login ask for what the server misses."""

        async def want(now: Secrets) -> Secrets | None:
            wanting = oauth_flow.with_scope(now, answer)
            same = wanting["wanted_scope"] == now.get("wanted_scope") or self._scope_is_fixed
            return now if same or now["access_token"] != held["access_token"] else wanting

        await self._noted(request, want)

    async def _noted(self, request: httpx2.Request, change: Callable[[Secrets], object]) -> None:
        try:
            await self._table.renew(self._owner, change)  # pyright: ignore[reportArgumentType]
        except (PostgresUnavailable, CannotOpen) as error:
            raise httpx2.ConnectError(f"its tokens cannot be changed: {_why(error)}", request=request) from None

    def _login_needed(self, request: httpx2.Request) -> httpx2.ConnectError:
        return httpx2.ConnectError(needs_login(self._owner.server, self._owner.user_id or None), request=request)


def _why(error: Exception) -> str:
    # Not the words of Postgres: they say where it is, and models read this.
    return f"the database is away: {error.why}" if isinstance(error, PostgresUnavailable) else str(error)
