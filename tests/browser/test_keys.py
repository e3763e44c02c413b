"""Keys in Chromium: an administrator makes one that may only read, and it changes nothing."""

from __future__ import annotations

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from ..integration.console.conftest import Console
from .conftest import ALL, NO_SCRIPTS, Looks, Shown, Window, slow

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

DISABLED = {
    "/jobs/new": "Submit",
    "/new-budget": "Save",
    "/tools/add-server": "Test connection",
    "/agents": "New agent",
    "/settings": "Save",
}
"""Buttons that a key which may only read finds disabled, by page."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def admin(opened: Console) -> str:
    """Return the first key, which closes the gateway to programs without one."""
    scopes = ["read", "write", "admin", "operator"]
    made = await opened.api.post("/v1/keys", json={"name": "root", "scopes": scopes})
    assert made.status_code == 201, made.text
    return made.json()["key"]


async def sign_in(shown: Shown, key: str, then: str) -> Page:
    page = await shown.goto(then)
    await page.get_by_label("API key").fill(key)
    await page.get_by_role("button", name="Sign in").click()
    return page


@slow(*ALL, NO_SCRIPTS[1])
async def test_a_key_that_may_only_read_changes_nothing(window: Window, admin: str, looks: Looks):
    async with window.open(looks) as shown:
        page = await sign_in(shown, admin, "/settings/keys")
        await page.get_by_label("Name", exact=True).fill(f"reader {looks}")
        await page.get_by_label("write", exact=True).uncheck()
        problems = await shown.accessible() if looks.scripts else []
        await page.get_by_role("button", name="Make the key").click()
        secret = await page.get_by_role("status").locator("pre").inner_text()
        problems += await shown.accessible() if looks.scripts else []
        await page.get_by_role("button", name="Sign out").click()

        await sign_in(shown, secret, "/jobs")
        await expect(page.get_by_text(f"reader {looks}")).to_be_attached()
        for path, name in DISABLED.items():
            await shown.goto(path)
            button = page.get_by_role("button", name=name, exact=True)
            await expect(button).to_be_disabled()
            assert "Your key lacks the scope" in (await button.get_attribute("title") or "")
            problems += await shown.accessible() if looks.scripts else []
        await shown.goto("/settings/keys")
        await expect(page.get_by_text("Your key lacks the scope admin.")).to_be_visible()

    assert problems == []
