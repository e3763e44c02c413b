"""Authorization servers of the hostile tenant: each place that a login asks, answering what it should not."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

from aiohttp import web

from wayline.chassis import Bus
from wayline.contracts.errors import Reject, Retry
from wayline.contracts.mcp_servers import DeleteServer, PutServer, ServerDeleted, ServerView
from wayline.contracts.server_config import ServerConfig, ServerOAuth
from wayline.contracts.server_logins import (
    AuthorizationUrl,
    AuthorizeServer,
    FinishAuthorization,
    OpenLogin,
    ServerAuthorized,
)

from .attack import SERVER
from .raw_server import HANG, Packed, Wire, odd, served
from .transfers import METADATA_URL, bomb, dripping, endless, endless_headers, moved

CALLBACK = "http://127.0.0.1:8080/v1/mcp/oauth/callback"
START = "http://127.0.0.1:8080/v1/mcp/oauth/start"
BROWSER = "b" * 43
ASK_WITHIN_S = 90.0
PLACES = {
    "resource": "/.well-known/oauth-protected-resource",
    "server": "/.well-known/oauth-authorization-server",
    "register": "/register",
    "token": "/token",
}


@dataclass(frozen=True)
class HostileLogin:
    """A login at whose authorization server one place answers something else."""

    name: str
    place: str
    """Of `PLACES`."""
    answer: Any
    """JSON in place of the right one, the bytes of a body, or what `raw_server.odd` writes."""
    outcomes: Sequence[str] = ("refused", "unavailable")

    async def run(self, bus: Bus, tenant: str, *, job: str) -> str:
        """Let the tenant log in, and return how far it came: `refused`, `unavailable` or `logged in`."""
        async with served(self._take) as origin:
            config = ServerConfig(url=f"{origin}/mcp", oauth=ServerOAuth())
            await bus.ask(PutServer(tenant=tenant, name=SERVER, config=config), ServerView)
            try:
                return await _log_in(bus, tenant, origin)
            except Retry:
                return "unavailable"
            except Reject:
                return "refused"
            finally:
                await bus.ask(DeleteServer(tenant=tenant, name=SERVER), ServerDeleted, timeout_s=30)

    async def _take(self, request: web.Request) -> web.StreamResponse:
        origin = f"http://{request.host}"
        place = next((place for place, path in PLACES.items() if request.path.startswith(path)), None)
        if place == self.place:
            if isinstance(self.answer, bytes):
                return web.Response(body=self.answer, content_type="application/json")
            return await odd(request, self.answer) or web.json_response(self.answer)
        if place is None:
            where = f'Bearer resource_metadata="{origin}{PLACES["resource"]}/mcp"'
            return web.Response(status=401, headers={"WWW-Authenticate": where})
        return web.json_response(RIGHT[place](origin), status=201 if place == "register" else 200)


async def _log_in(bus: Bus, tenant: str, origin: str) -> str:
    begin = AuthorizeServer(tenant=tenant, name=SERVER, redirect_uri=CALLBACK, start_uri=START)
    link = (await bus.ask(begin, AuthorizationUrl, timeout_s=ASK_WITHIN_S)).url
    state = parse_qs(urlsplit(link).query)["state"][0]
    await bus.ask(OpenLogin(tenant=tenant, state=state, browser=BROWSER), AuthorizationUrl)
    finish = FinishAuthorization(tenant=tenant, state=state, browser=BROWSER, code="c", iss=origin)
    await bus.ask(finish, ServerAuthorized, timeout_s=ASK_WITHIN_S)
    return "logged in"


RIGHT: dict[str, Callable[[str], Any]] = {
    "resource": lambda origin: {"resource": f"{origin}/mcp", "authorization_servers": [origin]},
    "server": lambda origin: {
        "issuer": origin,
        "authorization_endpoint": f"{origin}/authorize",
        "token_endpoint": f"{origin}/token",
        "registration_endpoint": f"{origin}/register",
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
    },
    "register": lambda _: {"client_id": "c", "redirect_uris": [CALLBACK], "token_endpoint_auth_method": "none"},
    "token": lambda _: {"access_token": "t", "token_type": "Bearer", "expires_in": 3_600},
}
DEEP = ("[" * 100_000 + "]" * 100_000).encode()
LONG = json.dumps({"issuer": "x" * 4_000_000}).encode()
ODD: dict[str, Any] = {
    "nothing, for ever": HANG,
    "a byte at a time": Wire(dripping, pause_s=0.1),
    "a body without end": Wire(endless),
    "headers without end": Wire(endless_headers),
    "a gzip of 256 MiB": Packed(bomb, "gzip"),
    "nested 100,000 deep": DEEP,
    "four megabytes": LONG,
    "a list": [1, 2],
    "a redirect to the metadata address": moved(METADATA_URL.encode()),
}
LOGINS = [
    HostileLogin("login: no harm", "none", None, ("logged in",)),
    *(
        HostileLogin(f"login: {place}, {what}", place, answer)
        for place in ("server", "token")
        for what, answer in ODD.items()
    ),
    HostileLogin("login: register, nothing, for ever", "register", HANG),
    HostileLogin("login: resource, nothing, for ever", "resource", HANG, ("refused", "unavailable", "logged in")),
    HostileLogin("login: token, no token", "token", {"token_type": "Bearer"}),
    HostileLogin("login: token, a token of 4 MB", "token", {"access_token": "x" * 4_000_000, "token_type": "Bearer"}),
    HostileLogin(
        "login: server, an endpoint at the metadata address",
        "server",
        {"issuer": METADATA_URL, "authorization_endpoint": METADATA_URL, "token_endpoint": METADATA_URL},
    ),
]
