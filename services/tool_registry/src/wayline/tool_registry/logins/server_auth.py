"""Send a server's requests with its token, and renew that before it ends or when it is refused."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable

import httpx2

from wayline.store import PostgresUnavailable
from wayline.store.sealing import CannotOpen
from wayline.tool_registry.calls.tool_servers import needs_login, needs_scope
from wayline.tool_registry.connection.http.asked_messages import HAS_LEFT, REFUSED_LOGIN
from wayline.tool_registry.errors import NotBegun
from wayline.tool_registry.logins import oauth_flow
from wayline.tool_registry.logins.authorization_table import AuthorizationTable, Secrets
from wayline.tool_registry.logins.token_owner import TokenOwner
from wayline.tool_registry.logins.token_renewals import TokenRenewals


class CannotAuthenticate(Exception):
    """There are no tokens that a request could be sent with."""


class ServerAuth(httpx2.Auth):
    """Authenticates the requests to one server; what cannot be is not sent."""

    def __init__(
        self,
        table: AuthorizationTable,
        renewals: TokenRenewals,
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
        self._renewals = renewals
        self._owner = owner
        self._url = url
        self._http = http
        self._add_secret = add_secret
        self._scope_is_fixed = scope_is_fixed
        self._needs_scope = needs_scope(owner.server, owner.user_id or None, fixed=scope_is_fixed)
        self._held: Secrets | None = None

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Send a request with the token, once more after a refusal.

        Raises ConnectError without a login, where nothing was sent yet. A refusal that lasts is noted on its answer:
        an exception would end the connection, and with it the calls beside this one.
        """
        held = self._held
        if held is None or not oauth_flow.is_fresh(held):
            held = await self._current_first(request)
        request.headers["Authorization"] = f"Bearer {held['access_token']}"
        answer = yield request
        if answer.status_code == httpx2.codes.UNAUTHORIZED:
            try:
                held = await self._current(refused=held["access_token"])
            except CannotAuthenticate as error:
                answer.extensions[REFUSED_LOGIN] = str(error)
                return
            request.headers["Authorization"] = f"Bearer {held['access_token']}"
            answer = yield request
            if answer.status_code == httpx2.codes.UNAUTHORIZED:
                answer.extensions[REFUSED_LOGIN] = await self._refuse(held)
        if oauth_flow.lacks_scope(answer):
            answer.extensions[REFUSED_LOGIN] = await self._want_scope(held, answer)

    async def _current_first(self, request: httpx2.Request) -> Secrets:
        """Return usable tokens before a request is sent. Raises ConnectError, unless it was sent before."""
        try:
            return await self._current(refused=None)
        except CannotAuthenticate as error:
            # The request may be the repeat of one that was redirected after its effect.
            kind = httpx2.ReadError if HAS_LEFT in request.extensions else httpx2.ConnectError
            raise kind(str(error), request=request) from None

    async def _current(self, *, refused: str | None) -> Secrets:
        """Return usable tokens. Raises CannotAuthenticate."""
        try:
            held = await self._table.find(self._owner)
            if (
                held is not None
                and held["url"] == self._url
                and (held["access_token"] == refused or not oauth_flow.is_fresh(held))
            ):
                held = await self._renewed(refused)
        except (NotBegun, PostgresUnavailable, CannotOpen) as error:
            raise CannotAuthenticate(f"its tokens cannot be renewed: {_why(error)}") from None
        # Tokens are for the URL that was logged in to: after a change of it they go nowhere.
        if held is None or held["url"] != self._url:
            self._held = None
            raise CannotAuthenticate(self._login_needed())
        self._held = held
        for name in ("access_token", "refresh_token"):
            if held[name]:
                self._add_secret(held[name])
        return held

    async def _renewed(self, refused: str | None) -> Secrets | None:
        """Return tokens other than those that the server has refused; None: there are none any more."""

        async def refresh(now: Secrets) -> Secrets | None:
            # Another replica may have renewed them while this one waited for its turn.
            if now["access_token"] != refused and oauth_flow.is_fresh(now):
                return now
            async with self._http() as http:
                return await oauth_flow.refreshed(http, now)

        held = await self._renewals.renew(self._owner, refresh)
        if held is not None and held["access_token"] == refused:
            # By a renewal that had begun before they were refused.
            held = await self._renewals.renew(self._owner, refresh)
        return held

    async def _refuse(self, held: Secrets) -> str:
        """Give tokens up that are refused as soon as they are new, and return what to do.

        The server trusts another authorization server now.
        """
        self._held = None
        token = held["access_token"]
        return await self._noted(lambda now: None if now["access_token"] == token else now) or self._login_needed()

    async def _want_scope(self, held: Secrets, answer: httpx2.Response) -> str:
        """Have the next login ask for what the server misses, and return what to do."""

        def want(now: Secrets) -> Secrets:
            wanting = oauth_flow.with_scope(now, answer)
            same = wanting["wanted_scope"] == now.get("wanted_scope") or self._scope_is_fixed
            return now if same or now["access_token"] != held["access_token"] else wanting

        return await self._noted(want) or self._needs_scope

    async def _noted(self, change: Callable[[Secrets], Secrets | None]) -> str:
        """Change the tokens, and return why they cannot be."""
        try:
            await self._table.change(self._owner, change)
        except (PostgresUnavailable, CannotOpen) as error:
            return f"its tokens cannot be changed: {_why(error)}"
        return ""

    def _login_needed(self) -> str:
        return needs_login(self._owner.server, self._owner.user_id or None)


def _why(error: Exception) -> str:
    # Not the words of Postgres: they say where it is, and models read this.
    return f"the database is away: {error.why}" if isinstance(error, PostgresUnavailable) else str(error)
