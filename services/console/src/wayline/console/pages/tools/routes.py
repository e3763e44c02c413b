"""The pages about tools, put together."""

from __future__ import annotations

from fastapi import APIRouter

from wayline.console.pages.tools import catalogue, edit_server, one_tool, secrets, server_offers, servers

router = APIRouter()
for pages in (catalogue, one_tool, servers, edit_server, server_offers, secrets):
    router.include_router(pages.router)
