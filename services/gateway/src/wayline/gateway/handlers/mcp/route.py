"""`/mcp`: JSON-RPC messages of callers with an API key, to the MCP server of this process, and its news to them."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse, Response

from wayline.contracts.strict_json import NotStrictJson, read_json
from wayline.gateway.errors import Forbidden
from wayline.gateway.handlers.mcp.authorization import challenge
from wayline.gateway.handlers.shared.dependencies import Gateway, GatewayDependency, Reader
from wayline.gateway.page_access import is_known
from wayline.gateway.problem_answers import CHALLENGE

if TYPE_CHECKING:
    from wayline.gateway.handlers.mcp.exchange import Exchanges


async def name_authorization(request: Request, gateway: GatewayDependency) -> None:
    """Have a client that is not authorized told where it finds out what to authorize with."""
    request.scope[CHALLENGE] = challenge(request, gateway.settings)


router = APIRouter(tags=["mcp"], dependencies=[Depends(name_authorization)])

PARSE_ERROR = -32700
"""Of JSON-RPC."""


class McpRoute:
    """The MCP server of this process, made when the first client comes: its library takes half a second to import."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._opening = asyncio.Lock()
        self._exchanges: Exchanges | None = None

    async def exchanges(self) -> Exchanges:
        """Return what answers MCP messages."""
        async with self._opening:
            if self._exchanges is None:
                # On a thread: other requests go on meanwhile.
                await asyncio.to_thread(import_module, "wayline.gateway.handlers.mcp.server")
                from wayline.gateway.handlers.mcp import exchange, offers, server, subscriptions

                known = offers.Offers(self._gateway.bus)
                told = subscriptions.Subscriptions(self._gateway, known)
                made = server.make_server(self._gateway, known, told)
                self._exchanges = exchange.Exchanges(self._gateway, made, known.schema_of, told)
            return self._exchanges


@router.post("/mcp", include_in_schema=False)
async def mcp(request: Request, gateway: GatewayDependency, caller: Reader) -> Response:
    """Answer one MCP message (docs/mcp.md); DELETE is a 405: nothing is kept of a session that could be ended."""
    _require_known_origin(request, gateway)
    body = await request.body()
    try:
        message: Any = read_json(body)
    except NotStrictJson as error:
        # Stricter than the library's reader: what it accepts beyond this could not be written again.
        problem = {"code": PARSE_ERROR, "message": f"this is not JSON: {error}"}
        return JSONResponse({"jsonrpc": "2.0", "id": None, "error": problem}, status_code=400)
    exchanges = await the_route(request).exchanges()
    return await exchanges.answer(request, caller, body, message)


@router.get("/mcp", include_in_schema=False)
async def mcp_changes(request: Request, gateway: GatewayDependency, caller: Reader) -> Response:
    """Tell the client of a session what changes, as server-sent events."""
    _require_known_origin(request, gateway)
    exchanges = await the_route(request).exchanges()
    return exchanges.stream(request, caller)


def the_route(request: Request) -> McpRoute:
    """Return the MCP server of this application."""
    return request.app.state.mcp


def _require_known_origin(request: Request, gateway: Gateway) -> None:
    """Refuse a web page that was not named: a page that rebinds its name to this address still says its own."""
    origin = request.headers.get("origin")
    if origin is not None and not is_known(origin, gateway.settings.mcp_origins):
        raise Forbidden(
            f"origin {origin[:200]!r} may not use /mcp: name it in WAYLINE_GATEWAY_MCP_ORIGINS to serve web pages of it"
        )
