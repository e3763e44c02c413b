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
from playwright.async_api import BrowserContext, Dialog, Locator, Page, Request, async_playwright, expect

from ..integration.console.conftest import Console, console, opened

__all__ = [
    "ALL",
    "BY_KEYS",
    "NO_SCRIPTS",
    "Hands",
    "Looks",
    "Shown",
    "Window",
    "chromium",
    "console",
    "opened",
    "slow",
    "watched",
    "window",
]

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--no-first-run", "--disable-dev-shm-usage"),
)
WAIT_MS = 60_000
"""For what a page does at all, also on a busy machine."""
expect.set_options(timeout=WAIT_MS)
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
    keys: bool = False
    """Whether the person at it has no mouse."""

    def __str__(self) -> str:
        without = f"{'' if self.scripts else ' without scripts'}{' by keys' if self.keys else ''}"
        return f"{self.theme} {self.width}{without}"


ALL = [Looks(theme, width) for theme in ("light", "dark") for width in (1280, 390)]
NO_SCRIPTS = [Looks(scripts=False), Looks("dark", 390, scripts=False)]
BY_KEYS = Looks(keys=True)


def slow(*looks: Looks) -> pytest.MarkDecorator:
    """Walk a task in each of these looks, in `make browser` alone."""
    return pytest.mark.parametrize("looks", [pytest.param(one, marks=pytest.mark.slow) for one in looks], ids=str)


TABS_MAX = 200
"""Presses of Tab from one end of a page to what a person looks for."""
OPTIONS_MAX = 200


@dataclass(frozen=True)
class Hands:
    """A person at a page: with a mouse, or with keys alone."""

    page: Page
    keys: bool

    async def press(self, found: Locator) -> None:
        """Press a link or a button, or tick a box."""
        if not self.keys:
            return await found.click()
        await self._reach(found)
        ticks = await found.evaluate("(one) => ['checkbox', 'radio'].includes(one.type)")
        await self.page.keyboard.press("Space" if ticks else "Enter")

    async def fill(self, found: Locator, text: str) -> None:
        """Write into a field in place of what stands there."""
        if not self.keys:
            return await found.fill(text)
        await self._reach(found)
        await self.page.keyboard.press("Control+A")
        await self.page.keyboard.insert_text(text)

    async def choose(self, found: Locator, value: str) -> None:
        """Choose an option of a list."""
        if not self.keys:
            await found.select_option(value)
            return
        await self._reach(found)
        await self.page.keyboard.press("Home")
        for _ in range(OPTIONS_MAX):
            if await found.input_value() == value:
                return
            await self.page.keyboard.press("ArrowDown")
        raise AssertionError(f"no key chooses {value!r}")

    async def _reach(self, found: Locator) -> None:
        await found.wait_for()
        for _ in range(TABS_MAX):
            if await found.evaluate("(one) => one === document.activeElement"):
                return
            await self.page.keyboard.press("Tab")
        raise AssertionError(f"Tab does not reach {found}")


@dataclass
class Shown:
    """A page of a browser, and what happened in it that must not."""

    page: Page
    url: str
    problems: list[str] = field(default_factory=list)
    streams: list[Request] = field(default_factory=list)
    """Event streams that are open."""
    looks: Looks = Looks()

    @property
    def hands(self) -> Hands:
        return Hands(self.page, self.looks.keys)

    @classmethod
    async def open(cls, context: BrowserContext, url: str, looks: Looks) -> Shown:
        """Open a window and watch it."""
        shown = cls(await context.new_page(), url, looks=looks)
        page = shown.page
        page.set_default_timeout(WAIT_MS)
        page.on("console", lambda message: shown.problems.append(f"{message.type}: {message.text}"))
        page.on("dialog", shown._asks)
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

    async def _asks(self, dialog: Dialog) -> None:
        self.problems.append(f"a dialog: {dialog.message}")
        await dialog.dismiss()

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
        async with watched(self.chromium, looks, url or self.console.url) as shown:
            yield shown


@asynccontextmanager
async def watched(chromium: Chromium, looks: Looks, url: str) -> AsyncIterator[Shown]:
    """Yield a page of a console; at its end nothing may have been said, asked elsewhere or refused by the policy."""
    context = await chromium.new_context(
        viewport={"width": looks.width, "height": 900},
        color_scheme="dark" if looks.theme == "dark" else "light",
        java_script_enabled=looks.scripts,
    )
    try:
        if looks.scripts:
            await context.add_init_script(CSP_REPORTS)
        shown = await Shown.open(context, url, looks)
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
