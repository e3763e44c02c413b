"""Health, metrics, and the description of the interface itself."""

from __future__ import annotations

import asyncio
from importlib.resources import files
from typing import Annotated

from fastapi import APIRouter, Header, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from prometheus_client import REGISTRY
from prometheus_client.exposition import choose_encoder

from wayline.gateway.handlers.shared.dependencies import GatewayDependency, Operator
from wayline.gateway.openapi import fails

router = APIRouter(tags=["operations"])


@router.get("/health/live")
async def live() -> dict[str, str]:
    """Answer that the process is alive."""
    return {"status": "ok"}


@router.get("/health/ready", responses={503: {"description": "Something it needs is away"}})
async def ready(gateway: GatewayDependency) -> Response:
    """Return the state of everything that the gateway needs."""
    needs = await gateway.ready()
    well = all(state == "ok" for state in needs.values())
    return JSONResponse({"status": "ok" if well else "unavailable", "needs": needs}, status_code=200 if well else 503)


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}, **fails()})
async def metrics(caller: Operator, accept: Annotated[str, Header(include_in_schema=False)] = "") -> Response:
    """Return Prometheus metrics: they name all tenants, their budgets and costs, so they need the scope `operator`.

    On the health port (`WAYLINE_HEALTH_PORT`), which only machines reach, they need no key.
    """
    encode, kind = choose_encoder(accept)
    return Response(encode(REGISTRY), media_type=kind)


@router.get("/openapi.json", include_in_schema=False)
async def description(request: Request) -> Response:
    """Return the OpenAPI description; what makes it takes most of a second, which other requests do not wait for."""
    return JSONResponse(await asyncio.to_thread(request.app.openapi))


@router.get("/docs", include_in_schema=False)
async def docs() -> HTMLResponse:
    """Return the interface as a page that needs no other server."""
    return HTMLResponse(files("wayline.gateway").joinpath("docs.html").read_text())
