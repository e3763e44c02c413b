"""The pages about settings, put together."""

from __future__ import annotations

from fastapi import APIRouter

from wayline.console.pages.settings import audit_page, keys_page, services_page, settings_page, tenants_page

router = APIRouter()
for pages in (settings_page, keys_page, tenants_page, services_page, audit_page):
    router.include_router(pages.router)
