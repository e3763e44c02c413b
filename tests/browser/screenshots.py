"""Screenshots of every page of a console that runs, light and dark, wide and narrow, and a sheet of twelve of them.

python -m tests.browser.screenshots [--console URL] [--folder .wayline/screenshots] [--sheet docs/console.webp]
"""

from __future__ import annotations

import argparse
import asyncio
from base64 import b64decode, b64encode
from pathlib import Path

from playwright.async_api import Browser, Page, async_playwright

from wayline.console.pages.frame import SECTIONS

from .conftest import CHROMIUM, FLAGS, Looks

LOOKS = [Looks(theme, width) for theme in ("light", "dark") for width in (1280, 390)]
SHEET = (
    ("home", LOOKS[0]),
    ("jobs", LOOKS[2]),
    ("a-job", LOOKS[0]),
    ("a-job-trace", LOOKS[2]),
    ("approvals", LOOKS[0]),
    ("costs", LOOKS[2]),
    ("agents", LOOKS[0]),
    ("tools", LOOKS[2]),
    ("knowledge", LOOKS[0]),
    ("schedules", LOOKS[2]),
    ("settings", LOOKS[0]),
    ("models", LOOKS[2]),
)
"""What the sheet shows, in rows of three."""
COLUMNS, WIDTH_PX, QUALITY = 3, 1_500, 62
LOAD_WITHIN_MS = 120_000
"""Of one page, also on a busy machine."""
VIEWS = ("trace", "context", "events", "raw")
SHOWN_JOBS = {
    "a-job": "status:completed+sort:slowest",
    "a-parked-job": "status:parked",
    "a-failed-job": "status:failed",
}


async def pages_of(page: Page, url: str) -> dict[str, str]:
    """Return the addresses of all pages by names, with those of some jobs."""
    found = {(path.strip("/") or "home"): path for group in SECTIONS for path, _, _ in group}
    more = {"new-job": "/jobs/new", "actions": "/jobs/actions", "decisions": "/approvals/history", "kit": "/kit"}
    found |= more | {"new-budget": "/new-budget", "no-page": "/nope", "no-jobs": "/jobs?s=nothing+like+it"}
    found |= {"new-agent": "/new-agent", "new-schedule": "/schedules/new", "add-server": "/tools/add-server"}
    found |= {"import-servers": "/tools/import-servers", "found-words": "/knowledge/search?q=What+is+a+lane"}
    for section in [path for group in SECTIONS for path, _, _ in group]:
        found |= await _within(page, url, section)
    for name, search in SHOWN_JOBS.items():
        await page.goto(f"{url}/jobs?s={search}")
        row = page.locator("[data-job]").first
        if await row.count():
            job = await row.get_attribute("data-job")
            found |= {name: f"/jobs/{job}", **{f"{name}-{view}": f"/jobs/{job}?view={view}" for view in VIEWS}}
            found[f"{name}-fork"] = f"/jobs/{job}/fork"
    return found


async def _within(page: Page, url: str, section: str) -> dict[str, str]:
    """Return the tabs of a section, and the first thing in its list with the tabs of its own."""
    found, name = dict[str, str](), section.strip("/")
    await page.goto(f"{url}{section}")
    tabs = [await tab.get_attribute("href") or "" for tab in await page.locator(".tabs a").all()]
    found |= {f"{name}-{tab.rpartition('/')[2]}": tab for tab in tabs if tab != section}
    first = page.locator("[data-row] a").first
    # The list of jobs has its own, and a decision stands in its list.
    if section not in ("/", "/jobs", "/approvals") and await first.count():
        own = await first.get_attribute("href") or ""
        found[f"{name}-first"] = own
        await page.goto(f"{url}{own}")
        tabs = [await tab.get_attribute("href") or "" for tab in await page.locator(".tabs a").all()]
        found |= {f"{name}-first-{tab.rpartition('/')[2]}": tab for tab in tabs if tab != own}
    return found


async def take(browser: Browser, url: str, folder: Path) -> None:
    """Write a picture of every page in every look."""
    for looks in LOOKS:
        size = {"width": looks.width, "height": 800 if looks.width > 800 else 844}
        context = await browser.new_context(
            viewport={"width": size["width"], "height": size["height"]},
            color_scheme="dark" if looks.theme == "dark" else "light",
        )
        page = await context.new_page()
        page.set_default_timeout(LOAD_WITHIN_MS)
        for name, path in (await pages_of(page, url)).items():
            answer = await page.goto(f"{url}{path}")
            if answer is None or answer.status not in (200, 404):
                raise SystemExit(f"{path} was not shown: {answer and answer.status}")
            await page.screenshot(path=folder / f"{name}-{looks.theme}-{looks.width}.png")
            whole = folder / f"{name}-{looks.theme}-{looks.width}-whole.png"
            await page.screenshot(path=whole, full_page=True)
        await context.close()


async def sheet(browser: Browser, folder: Path, file: Path) -> None:
    """Write twelve of the pictures as one small file."""
    pictures = [folder / f"{name}-{looks.theme}-{looks.width}.png" for name, looks in SHEET]
    images = "".join(f'<img src="data:image/png;base64,{b64encode(one.read_bytes()).decode()}">' for one in pictures)
    style = (
        f"body{{margin:0;padding:12px;background:#888;display:grid;gap:12px;grid-template-columns:repeat({COLUMNS},1fr)}}"
        "img{width:100%;display:block}"
    )
    page = await browser.new_page(viewport={"width": WIDTH_PX, "height": 400})
    await page.set_content(f"<style>{style}</style>{images}")
    height = await page.evaluate("document.documentElement.scrollHeight")
    await page.set_viewport_size({"width": WIDTH_PX, "height": height})
    session = await page.context.new_cdp_session(page)
    shot = await session.send("Page.captureScreenshot", {"format": "webp", "quality": QUALITY})
    await asyncio.to_thread(file.write_bytes, b64decode(shot["data"]))


async def main() -> None:
    """Take them all."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--console", default="http://127.0.0.1:8081")
    parser.add_argument("--folder", type=Path, default=Path(".wayline/screenshots"))
    parser.add_argument("--sheet", type=Path)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        await take(browser, given.console, given.folder)
        if given.sheet:
            await sheet(browser, given.folder, given.sheet)
        await browser.close()


if __name__ == "__main__":
    asyncio.run(main())
