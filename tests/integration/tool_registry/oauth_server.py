"""An authorization server and the MCP server that it protects, on one socket."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import secrets
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import httpx2
from mcp.server import MCPServer
from starlette.requests import Request
from starlette.responses import JSONResponse, Response


class Protected:
    """Serves one tool to requests with a token that it gave out; every answer of a kind can be changed."""

    def __init__(self, *, expires_in: int = 3_600) -> None:
        self.url = ""
        self.mcp = MCPServer("bank")
        self.mcp.add_tool(self.pay)
        self.expires_in = expires_in
        self.codes: dict[str, dict[str, str]] = {}
        self.valid: set[str] = set()
        self.refresh_tokens: set[str] = set()
        self.given: list[str] = []
        """All tokens that were ever given out."""
        self.refreshed = 0
        self.revoked: list[str] = []
        self.issuer: str | None = None
        """Named in the metadata in place of the true one."""
        self.token_endpoint: str | None = None
        self.answer_token: Callable[[dict[str, str]], Awaitable[Response]] | None = None
        """Answers requests for tokens in place of what gives them out."""
        self.paid = 0
        self.account_of: dict[str, str] = {}
        """Whose each token is that was given out."""
        self.scope_of: dict[str, set[str]] = {}
        self.requests: list[tuple[str, str]] = []
        """Account and method of each message that came with a valid token."""
        self.pay_scope: str | None = None
        """What a token has to be given for to pay."""
        self.client_id = "c1"
        self.secret: str | None = None
        """Of the one client that there is; None: clients register, and have none."""
        self.trusts = self
        """Whose tokens are taken."""
        self.asked_scopes: list[str | None] = []
        self.asked_clients: list[str] = []

    def pay(self, amount: int) -> str:
        """Pay."""
        self.paid += amount
        return "paid"

    def streamable_http_app(self) -> Any:
        """Return the application: the authorization server's pages, and the MCP server behind a token."""
        inner = self.mcp.streamable_http_app()

        async def app(scope: Any, receive: Any, send: Any) -> None:
            answer, asked = None, receive
            if scope["type"] == "http":
                request = Request(scope, receive)
                answer, asked = await self._answer(request), await again(request)
            await (inner if answer is None else answer)(scope, asked, send)

        return app

    @property
    def origin(self) -> str:
        """Return what the authorization server calls itself; empty until it is known."""
        return self.url.removesuffix("/mcp")

    async def open(self, url: str, *, account: str = "admin") -> dict[str, str]:
        """Consent as a person does in a browser, and return what comes back to the callback."""
        async with httpx2.AsyncClient(cookies={"account": account}) as http:
            answer = await http.get(url)
        return dict(parse_qsl(urlsplit(answer.headers["location"]).query))

    async def walk(self, link: str, *, account: str = "admin") -> httpx2.Response:
        """Log in as a person does in one browser: our page, its button, consent, and back to the callback."""
        async with httpx2.AsyncClient(cookies={"account": account}, headers={"Accept": "text/html"}) as browser:
            page = await browser.get(link)
            form = dict(re.findall(r'name="(\w+)" value="([^"]+)"', page.text))
            going = await browser.post(link.partition("?")[0], data=form)
            consented = await browser.get(going.headers["location"])
            return await browser.get(consented.headers["location"])

    async def _answer(self, request: Request) -> Response | None:
        origin, path = f"http://{request.headers['host']}", request.url.path
        if path.startswith("/.well-known/oauth-protected-resource"):
            return JSONResponse({"resource": f"{origin}/mcp", "authorization_servers": [self.trusts.origin or origin]})
        if path == "/.well-known/oauth-authorization-server":
            return JSONResponse(self._metadata(origin))
        if path == "/register":
            asked = await request.json()
            return JSONResponse({**asked, "client_id": self.client_id, "token_endpoint_auth_method": "none"}, 201)
        if path == "/authorize":
            return self._authorize({**request.query_params, "account": request.cookies["account"]}, origin)
        if path in ("/token", "/revoke"):
            form = {name: values[0] for name, values in parse_qs((await request.body()).decode()).items()}
            if self.secret is not None and request.headers.get("authorization") != basic("shop", self.secret):
                return JSONResponse({"error": "invalid_client"}, 401)
            if path == "/revoke":
                return self._revoke(form)
            return await self.answer_token(form) if self.answer_token else self.give_tokens(form)
        where = f'Bearer resource_metadata="{origin}/.well-known/oauth-protected-resource/mcp"'
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if token not in self.trusts.valid:
            return Response(status_code=401, headers={"WWW-Authenticate": where})
        method = json.loads(await request.body() or b"{}").get("method", "")
        self.requests.append((self.trusts.account_of[token], method))
        if method == "tools/call" and self.pay_scope and self.pay_scope not in self.trusts.scope_of[token]:
            where += f', error="insufficient_scope", scope="{self.pay_scope}"'
            return Response(status_code=403, headers={"WWW-Authenticate": where})
        return None

    def _metadata(self, origin: str) -> dict[str, Any]:
        return {
            "issuer": self.issuer or origin,
            "authorization_endpoint": f"{origin}/authorize",
            "token_endpoint": self.token_endpoint or f"{origin}/token",
            **({} if self.secret else {"registration_endpoint": f"{origin}/register"}),
            **({"token_endpoint_auth_methods_supported": ["client_secret_basic"]} if self.secret else {}),
            "client_id_metadata_document_supported": True,
            "revocation_endpoint": f"{origin}/revoke",
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
        }

    def _authorize(self, asked: dict[str, str], origin: str) -> Response:
        assert asked["code_challenge_method"] == "S256"
        assert asked["resource"].endswith("/mcp")
        self.asked_scopes.append(asked.get("scope"))
        self.asked_clients.append(asked["client_id"])
        code = f"code-{secrets.token_hex(8)}"
        self.codes[code] = asked
        to = f"{asked['redirect_uri']}?code={code}&state={asked['state']}&iss={origin}"
        return Response(status_code=302, headers={"Location": to})

    def give_tokens(self, form: dict[str, str]) -> Response:
        """Give out tokens for a code or a refresh token, as often as either counts."""
        if form["grant_type"] == "authorization_code":
            asked = self.codes.pop(form["code"], None)
            digest = hashlib.sha256(form["code_verifier"].encode()).digest()
            challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
            if asked is None or challenge != asked["code_challenge"] or form["redirect_uri"] != asked["redirect_uri"]:
                return JSONResponse({"error": "invalid_grant"}, 400)
            account, scope = asked["account"], set(asked.get("scope", "").split())
        elif form.get("refresh_token") in self.refresh_tokens:
            # Rotated: the one before is worth nothing any more.
            self.refresh_tokens.discard(form["refresh_token"])
            self.refreshed += 1
            account, scope = self.account_of[form["refresh_token"]], self.scope_of[form["refresh_token"]]
        else:
            return JSONResponse({"error": "invalid_grant"}, 400)
        access, refresh = f"canary-access-{secrets.token_hex(8)}", f"canary-refresh-{secrets.token_hex(8)}"
        self.valid = {token for token in self.valid if self.account_of[token] != account} | {access}
        self.refresh_tokens.add(refresh)
        self.account_of |= {access: account, refresh: account}
        self.scope_of |= {access: scope, refresh: scope}
        self.given += [access, refresh]
        answer = {"access_token": access, "refresh_token": refresh, "expires_in": self.expires_in}
        return JSONResponse({**answer, "token_type": "Bearer"})

    def _revoke(self, form: dict[str, str]) -> Response:
        self.revoked.append(form["token"])
        whose = self.account_of[form["token"]]
        self.valid = {token for token in self.valid if self.account_of[token] != whose}
        self.refresh_tokens = {token for token in self.refresh_tokens if self.account_of[token] != whose}
        return Response(status_code=200)


def basic(client_id: str, secret: str) -> str:
    """Return the header of a client with a secret."""
    return "Basic " + base64.b64encode(f"{client_id}:{secret}".encode()).decode()


async def again(request: Request) -> Any:
    """Return what gives a request's body once more, and goes on with what the client does then."""
    body, given = await request.body(), False

    async def receive() -> Any:
        nonlocal given
        if given:
            return await request.receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive
