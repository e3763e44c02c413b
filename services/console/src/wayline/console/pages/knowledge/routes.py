"""The pages about knowledge, put together."""

from __future__ import annotations

from fastapi import APIRouter

from wayline.console.pages.knowledge import document, documents, search, upload

router = APIRouter()
for _module in (documents, document, search, upload):
    router.include_router(_module.router)
