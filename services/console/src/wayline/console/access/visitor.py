"""Who asks for a page: the browser's session, what its API key may do, and a client that speaks for it."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from secrets import compare_digest
from typing import Annotated, Any, TypeAlias

from fastapi import Depends, Request
from starlette.datastructures import FormData

from wayline.client import ApiError
from wayline.client.address import Address
from wayline.client.client import Client
from wayline.console.access.sealed_cookie import CookieSeal, Session

ME_KEPT_S = 5.0
"""What a key may do is asked again after so long; whether it is still one, the gateway says with every answer."""
CLIENTS_MAX = 64
"""API keys whose connections are kept open."""
COOKIE = "wayline-console"
THEMES = ("system", "light", "dark")
THEME_COOKIE = "wayline-theme"
FORM_FIELDS_MAX = 4_096
"""An agent's form has one for each of its tools."""
FORM_PART_MAX_BYTES = 1_024 * 1_024


class SignInNeeded(Exception):
    """The gateway wants a key, and this browser has none that it takes."""


class ForeignForm(Exception):
    """A form without the token of the session: it is not of one of our pages, or is older than the session."""


@dataclass(slots=True)
class _OpenClient:
    client: Client
    users: int = 0
    """Requests that are being answered with it; streams last long."""
    me: dict[str, Any] | None = None
    """What `GET /v1/me` said of its key."""
    asked_s: float = 0.0
    """When that was asked, by a clock that only goes on."""


class Clients:
    """One client for each API key, as their connections are dear to begin."""

    def __init__(self, gateway_url: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._url = gateway_url
        self._clock = clock
        self._clients: OrderedDict[str | None, _OpenClient] = OrderedDict()

    def begin(self, key: str | None) -> Client:
        """Return a client of a key that nobody else has."""
        return Client(Address(self._url, key))

    @asynccontextmanager
    async def borrowed(self, key: str | None) -> AsyncIterator[Client]:
        """Lend the client of a key; of more than are kept open, those that nobody uses give way, the oldest first."""
        kept = self._clients.get(key)
        if kept is None:
            kept = self._clients[key] = _OpenClient(self.begin(key))
        self._clients.move_to_end(key)
        kept.users += 1
        try:
            yield kept.client
        finally:
            kept.users -= 1
            await self._close_idle()

    async def me_of(self, key: str | None) -> dict[str, Any]:
        """Return what the gateway says of a key whose client is borrowed, at most ME_KEPT_S old. Raises ApiError."""
        kept, now_s = self._clients[key], self._clock()
        me = kept.me if now_s - kept.asked_s <= ME_KEPT_S else None
        if me is None:
            me = kept.me = await kept.client.get("/v1/me")
            kept.asked_s = now_s
        return me

    async def _close_idle(self) -> None:
        idle = [key for key, kept in self._clients.items() if not kept.users]
        gone = [self._clients.pop(key) for key in idle[: max(len(self._clients) - CLIENTS_MAX, 0)]]
        for kept in gone:
            await kept.client.__aexit__()

    async def close(self) -> None:
        for kept in self._clients.values():
            await kept.client.__aexit__()
        self._clients.clear()


@dataclass(frozen=True, slots=True)
class Visitor:
    """A browser that may open pages."""

    session: Session
    client: Client
    me: dict[str, Any]
    """What `GET /v1/me` says of its key."""
    theme: str = "system"

    def may(self, scope: str) -> bool:
        """Return whether its key has a scope."""
        return scope in self.me["scopes"]


def theme_of(request: Request) -> str:
    """Return the theme that a browser has chosen."""
    chosen = request.cookies.get(THEME_COOKIE, "")
    return chosen if chosen in THEMES else "system"


def cookie_name(request: Request) -> str:
    """Return the name of the session's cookie: over TLS one that no other host can set."""
    return f"__Host-{COOKIE}" if request.app.state.is_tls else COOKIE


def session_of(request: Request) -> Session | None:
    """Return the session that a request's cookie says; None: it has none."""
    seal: CookieSeal = request.app.state.seal
    return seal.open(request.cookies.get(cookie_name(request)))


async def _visitor(request: Request) -> AsyncIterator[Visitor]:
    """Yield who asks, until the answer has gone out. Raises SignInNeeded, and ApiError where the gateway is away."""
    session = session_of(request)
    if session is None:
        # A gateway without keys is open to this machine: the browser gets a session for the token of its forms.
        session = request.app.state.seal.begin(None)
        request.state.begun = session
    elif renewed := request.app.state.seal.renewed(session):
        request.state.begun = session = renewed
    async with request.app.state.clients.borrowed(session.key) as client:
        try:
            me = await request.app.state.clients.me_of(session.key)
        except ApiError as error:
            if error.status == 401:
                raise SignInNeeded from None
            raise
        yield Visitor(session, client, me, theme_of(request))


VisitorDependency: TypeAlias = Annotated[Visitor, Depends(_visitor)]


async def _posted(request: Request, visitor: VisitorDependency) -> FormData:
    """Read a form. Raises ForeignForm where it does not have the session's token."""
    form = await request.form(max_files=0, max_fields=FORM_FIELDS_MAX, max_part_size=FORM_PART_MAX_BYTES)
    require_token(form, visitor.session)
    return form


def require_token(form: FormData, session: Session) -> None:
    """Pass for a form that has the session's token. Raises ForeignForm."""
    token = form.get("token")
    if not isinstance(token, str) or not compare_digest(token.encode(), session.token.encode()):
        raise ForeignForm


PostedForm: TypeAlias = Annotated[FormData, Depends(_posted)]


def field(form: FormData, name: str) -> str:
    """Return a field of a form without white space around it; empty where there is none.

    Its lines end as they were typed: browsers send other ends.
    """
    value = form.get(name)
    return value.replace("\r\n", "\n").strip() if isinstance(value, str) else ""
