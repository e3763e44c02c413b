"""Looks at one page in Chromium: when it shows, what it sends, how it scrolls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from statistics import median

from playwright.async_api import Browser, BrowserContext, CDPSession, Page
from playwright.async_api import Error as PlaywrightError

WITHIN_MS = 120_000
LOADED = """() => {
  const all = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')];
  return {
    answered: all[0].responseStart,
    whole: all[0].responseEnd,
    sent: all.reduce((sum, one) => sum + one.transferSize, 0),
  };
}"""
# The browser reports a paint some time after its frame: whoever asks at once may find none.
PAINTED = """() => new Promise((painted, fail) => {
  setTimeout(() => fail(new Error('nothing was painted')), 20000);
  new PerformanceObserver((entries) => {
    const first = entries.getEntriesByName('first-contentful-paint')[0];
    if (first) painted(first.startTime);
  }).observe({ type: 'paint', buffered: true });
})"""
SCROLLED = """async () => {
  // A window of which the browser makes no more frames, as happens where many come and go, is not measured.
  const stalled = new Promise((_, fail) => setTimeout(() => fail(new Error('no frames')), 20000));
  const frame = () => Promise.race([new Promise(requestAnimationFrame), stalled]);
  const most = document.documentElement.scrollHeight - innerHeight, frames = [];
  const step = Math.max(most / 120, 40);
  await frame();
  let last = performance.now();
  for (let y = 0; y <= most; y += step) {
    scrollTo(0, y);
    await frame();
    frames.push(performance.now() - last);
    last = performance.now();
  }
  return frames;
}"""


@dataclass
class Measured:
    """What one page took, a value a round."""

    name: str
    asked: str
    answered: list[float] = field(default_factory=list)
    whole: list[float] = field(default_factory=list)
    """When the last byte of the page came."""
    painted: list[float] = field(default_factory=list)
    drawn: list[float] = field(default_factory=list)
    """Processor time of the page's main thread until it was shown, in milliseconds."""
    sent: list[float] = field(default_factory=list)
    longest: list[float] = field(default_factory=list)
    work: list[float] = field(default_factory=list)
    """The same for one frame of scrolling."""

    def cells(self) -> list[str]:
        kilobytes = [sent / 1_000 for sent in self.sent]
        columns = (self.answered, self.whole, self.painted, self.drawn, kilobytes, self.longest, self.work)
        return [self.name, self.asked, *map(_middle, columns)]


def _middle(values: list[float]) -> str:
    return f"{median(values):,.0f} [{min(values):,.0f}..{max(values):,.0f}]" if values else ""


class Window:
    """A page in a browser that has nothing cached, and what its main thread has done."""

    def __init__(self, context: BrowserContext, page: Page, session: CDPSession) -> None:
        self.context = context
        self.page = page
        self._session = session

    async def loaded(self, address: str, into: Measured) -> None:
        """Open a page, and keep when it was answered and shown, what was sent, and what that took."""
        await self.page.goto(address)
        painted = await self.page.evaluate(PAINTED)
        found = await self.page.evaluate(LOADED)
        into.answered.append(found["answered"])
        into.whole.append(found["whole"])
        into.painted.append(painted)
        into.sent.append(found["sent"])
        # It begins anew with each document.
        into.drawn.append(await self._work_ms())

    async def scrolled(self, into: Measured) -> None:
        """Scroll the page to its end, and keep how long its frames took."""
        await self.page.bring_to_front()
        before = await self._work_ms()
        try:
            frames = await self.page.evaluate(SCROLLED)
        except PlaywrightError as error:
            if "no frames" not in str(error):
                raise
            return
        if frames:
            into.longest.append(max(frames))
            into.work.append((await self._work_ms() - before) / len(frames))

    async def _work_ms(self) -> float:
        """Return the main thread's processor time so far, which other work on the machine changes little."""
        metrics = await self._session.send("Performance.getMetrics")
        return next(one["value"] for one in metrics["metrics"] if one["name"] == "TaskDuration") * 1_000


@asynccontextmanager
async def window_of(browser: Browser) -> AsyncIterator[Window]:
    """Yield a window with nothing cached."""
    context = await browser.new_context(viewport={"width": 1280, "height": 900})
    page = await context.new_page()
    page.set_default_timeout(WITHIN_MS)
    session = await context.new_cdp_session(page)
    await session.send("Performance.enable", {"timeDomain": "threadTicks"})
    yield Window(context, page, session)
    await context.close()


async def look(browser: Browser, into: Measured, address: str, *, scrolls: bool = False, after: str = "") -> None:
    """Look at a page; `after`: another page of the same server, from which a person comes back to it.

    Not from a blank page: there the policy that parts us from pages of other origins has the browser begin a process.
    """
    async with window_of(browser) as window:
        if after:
            await window.page.goto(address)
            await window.page.goto(after)
        await window.loaded(address, into)
        if scrolls:
            await window.scrolled(into)


@asynccontextmanager
async def one_word() -> AsyncIterator[str]:
    """Serve a page of one word, and yield its address: no page is shown sooner."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n"
        writer.write(head + b"<!doctype html><title>Hello</title><p>Hello")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        host, port = server.sockets[0].getsockname()
        yield f"http://{host}:{port}/"


async def blank(browser: Browser, into: Measured) -> None:
    """Scroll a page with nothing on it."""
    async with window_of(browser) as window:
        await window.page.set_content("<div style='height: 60000px'>nothing</div>")
        await window.scrolled(into)
