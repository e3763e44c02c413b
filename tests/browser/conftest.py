"""Chromium at the console of a running platform; every page that a test opens is watched for what must not happen."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser as Chromium
from playwright.async_api import BrowserContext, Page, Request, async_playwright

from ..integration.console.conftest import Console, console, opened

__all__ = ["Looks", "Shown", "Window", "chromium", "console", "opened", "window"]

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--no-first-run", "--disable-dev-shm-usage"),
)
WAIT_MS = 20_000
AXE = Path(__file__).with_name("vendor") / "axe-4.14.1.min.js"
SERIOUS = ("serious", "critical")
CSP_REPORTS = (
    "addEventListener('securitypolicyviolation', (event) => "
    "console.error(`refused by policy: ${event.violatedDirective} ${event.blockedURI}`))"
)


@dataclass(frozen=True)
class Looks:
    """How a window looks."""

    theme: str = "light"
    width: int = 1280
    scripts: bool = True

    def __str__(self) -> str:
        return f"{self.theme} {self.width}{'' if self.scripts else ' without scripts'}"


@dataclass
class Shown:
    """A page of a browser, and what happened in it that must not."""

    page: Page
    url: str
    problems: list[str] = field(default_factory=list)
    streams: list[Request] = field(default_factory=list)
    """Event streams that are open."""

    @classmethod
    async def open(cls, context: BrowserContext, url: str) -> Shown:
        """Open a window and watch it."""
        shown = cls(await context.new_page(), url)
        page = shown.page
        page.set_default_timeout(WAIT_MS)
        page.on("console", lambda message: shown.problems.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: shown.problems.append(f"error: {error}"))
        page.on("request", shown._asked)
        page.on("requestfinished", shown._over)
        page.on("requestfailed", shown._over)
        return shown

    def _asked(self, request: Request) -> None:
        if not request.url.startswith((f"{self.url}/", "data:")):
            self.problems.append(f"a request elsewhere: {request.url}")
        if request.resource_type == "eventsource":
            self.streams.append(request)

    def _over(self, request: Request) -> None:
        if request in self.streams:
            self.streams.remove(request)

    async def goto(self, path: str) -> Page:
        """Open a page of the console."""
        await self.page.goto(f"{self.url}{path}")
        return self.page

    async def accessible(self) -> list[str]:
        """Return what axe finds serious, and whether the page is wider than its window."""
        await self.page.evaluate(AXE.read_text())
        found = await self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        serious = [one for one in found["violations"] if one["impact"] in SERIOUS]
        wide = await self.page.evaluate("document.documentElement.scrollWidth > innerWidth")
        said = [f"{one['id']}: {json.dumps([node['html'][:160] for node in one['nodes'][:3]])}" for one in serious]
        return said + (["the page is wider than its window"] if wide else [])


@dataclass
class Window:
    """Opens pages of a console in Chromium."""

    chromium: Chromium
    console: Console

    @asynccontextmanager
    async def open(self, looks: Looks = Looks(), *, url: str | None = None) -> AsyncIterator[Shown]:
        """Yield a page; at its end nothing may have been said, asked elsewhere or refused by the policy."""
        context = await self.chromium.new_context(
            viewport={"width": looks.width, "height": 900},
            color_scheme="dark" if looks.theme == "dark" else "light",
            java_script_enabled=looks.scripts,
        )
        try:
            if looks.scripts:
                await context.add_init_script(CSP_REPORTS)
            shown = await Shown.open(context, url or self.console.url)
            yield shown
            assert shown.problems == []
        finally:
            await context.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chromium() -> AsyncIterator[Any]:
    if CHROMIUM is None:
        pytest.skip("there is no chromium on this machine: apt-get install chromium")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield browser
        await browser.close()


@pytest.fixture
def window(chromium: Chromium, console: Console) -> Window:
    """A browser at the console, with a model that says yes."""
    return Window(chromium, console)
