"""The pages about knowledge, put together."""

from __future__ import annotations

from fastapi import APIRouter

from wayline.console.pages.knowledge import documents

router = APIRouter()
router.include_router(documents.router)
