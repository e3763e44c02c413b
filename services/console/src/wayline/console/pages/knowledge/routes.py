"""The pages about knowledge, put together."""

from __future__ import annotations

from fastapi import APIRouter

from wayline.console.pages.knowledge import document, documents, facts, forgetting, search, subjects, upload

router = APIRouter()
# The kinds of facts last: their addresses would take those of others.
for _module in (documents, document, search, upload, subjects, forgetting, facts):
    router.include_router(_module.router)
