"""The pages about models, put together."""

from __future__ import annotations

from fastapi import APIRouter

from wayline.console.pages.models import model_list, model_page

router = APIRouter()
for pages in (model_list, model_page):
    router.include_router(pages.router)
