"""An authorization server and the MCP server that it protects, on one socket."""

from __future__ import annotations

import base64
import hashlib
import secrets
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import httpx2
from mcp.server import MCPServer
from starlette.requests import Request
from starlette.responses import JSONResponse, Response


class Protected:
    """Serves one tool to whoever brings a token that it gave out; every answer of a kind can be changed."""

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
        self.paid = 0

    def pay(self, amount: int) -> str:
        """Pay."""
        self.paid += amount
        return "paid"

    def streamable_http_app(self) -> Any:
        """Return the application: the authorization server's pages, and the MCP server behind a token."""
        inner = self.mcp.streamable_http_app()

        async def app(scope: Any, receive: Any, send: Any) -> None:
            answer = None if scope["type"] != "http" else await self._answer(Request(scope, receive))
            await (inner if answer is None else answer)(scope, receive, send)

        return app

    async def open(self, url: str) -> dict[str, str]:
        """Consent as a person does in a browser, and return what comes back to the callback."""
        async with httpx2.AsyncClient() as http:
            answer = await http.get(url)
        return dict(parse_qsl(urlsplit(answer.headers["location"]).query))

    async def _answer(self, request: Request) -> Response | None:
        origin, path = f"http://{request.headers['host']}", request.url.path
        if path.startswith("/.well-known/oauth-protected-resource"):
            return JSONResponse({"resource": f"{origin}/mcp", "authorization_servers": [origin]})
        if path == "/.well-known/oauth-authorization-server":
            return JSONResponse(self._metadata(origin))
        if path == "/register":
            asked = await request.json()
            return JSONResponse({**asked, "client_id": "c1", "token_endpoint_auth_method": "none"}, 201)
        if path == "/authorize":
            return self._authorize(dict(request.query_params), origin)
        if path in ("/token", "/revoke"):
            form = {name: values[0] for name, values in parse_qs((await request.body()).decode()).items()}
            return self._token(form) if path == "/token" else self._revoke(form)
        if request.headers.get("authorization", "").removeprefix("Bearer ") in self.valid:
            return None
        where = f'Bearer resource_metadata="{origin}/.well-known/oauth-protected-resource/mcp"'
        return Response(status_code=401, headers={"WWW-Authenticate": where})

    def _metadata(self, origin: str) -> dict[str, Any]:
        return {
            "issuer": self.issuer or origin,
            "authorization_endpoint": f"{origin}/authorize",
            "token_endpoint": self.token_endpoint or f"{origin}/token",
            "registration_endpoint": f"{origin}/register",
            "revocation_endpoint": f"{origin}/revoke",
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
        }

    def _authorize(self, asked: dict[str, str], origin: str) -> Response:
        assert asked["code_challenge_method"] == "S256"
        assert asked["resource"] == f"{origin}/mcp"
        code = f"code-{secrets.token_hex(8)}"
        self.codes[code] = asked
        to = f"{asked['redirect_uri']}?code={code}&state={asked['state']}&iss={origin}"
        return Response(status_code=302, headers={"Location": to})

    def _token(self, form: dict[str, str]) -> Response:
        if form["grant_type"] == "authorization_code":
            asked = self.codes.pop(form["code"], None)
            digest = hashlib.sha256(form["code_verifier"].encode()).digest()
            challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
            if asked is None or challenge != asked["code_challenge"] or form["redirect_uri"] != asked["redirect_uri"]:
                return JSONResponse({"error": "invalid_grant"}, 400)
        elif form.get("refresh_token") in self.refresh_tokens:
            # Rotated: the one before is worth nothing any more.
            self.refresh_tokens.discard(form["refresh_token"])
            self.refreshed += 1
        else:
            return JSONResponse({"error": "invalid_grant"}, 400)
        access, refresh = f"canary-access-{secrets.token_hex(8)}", f"canary-refresh-{secrets.token_hex(8)}"
        self.valid = {access}
        self.refresh_tokens.add(refresh)
        self.given += [access, refresh]
        answer = {"access_token": access, "refresh_token": refresh, "expires_in": self.expires_in}
        return JSONResponse({**answer, "token_type": "Bearer"})

    def _revoke(self, form: dict[str, str]) -> Response:
        self.revoked.append(form["token"])
        self.valid, self.refresh_tokens = set(), set()
        return Response(status_code=200)
