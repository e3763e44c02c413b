"""Knowledge in Chromium: files are dropped, found and forgotten; their progress outlasts a reload."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import expect

from .conftest import ALL, WAIT_MS, Looks, Window

pytestmark = [pytest.mark.asyncio(loop_scope="module")]
ALSO = ("retrieval",)
DROP = """() => {
  const dropped = new DataTransfer();
  dropped.items.add(new File(['A narwhal sings.'], 'dropped.md', {type: 'text/markdown'}));
  document.dispatchEvent(new DragEvent('drop', {dataTransfer: dropped, bubbles: true, cancelable: true}));
}"""
LOOKS = [ALL[0], *(pytest.param(one, marks=pytest.mark.slow) for one in ALL[1:])]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Some files, one of them empty and one hidden."""
    for name, text in {"a.md": "A quokka smiles.", "sub/b.md": "Beta.", "empty.md": "", ".git/config": "x"}.items():
        (tmp_path / "notes" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "notes" / name).write_text(text)
    return tmp_path / "notes"


@pytest.mark.parametrize("looks", LOOKS, ids=str)
async def test_a_folder_is_uploaded_searched_and_forgotten(window: Window, folder: Path, looks: Looks):
    async with window.open(looks) as shown:
        page = await shown.goto("/knowledge/upload")
        await page.set_input_files("#f-folder", folder)
        await page.get_by_role("button", name="Add", exact=True).click()
        states = page.locator("#uploads .status-ready")
        await expect(states).to_have_count(2, timeout=WAIT_MS)
        await page.evaluate(DROP)
        await expect(states).to_have_count(3, timeout=WAIT_MS)
        await expect(page.locator("[data-refused] li")).to_contain_text("notes/empty.md: the document is empty")
        await page.reload()
        await expect(states).to_have_count(3, timeout=WAIT_MS)
        await expect(page.locator("[data-refused] li")).to_have_count(1)
        problems = await shown.accessible()

        await shown.goto("/knowledge/search?mode=keyword")
        await page.get_by_label("What to look for").fill("quokka")
        await page.keyboard.press("Enter")
        await expect(page.locator(".kn-hit")).to_contain_text("A quokka smiles.")
        problems += await shown.accessible()

        await page.get_by_role("link", name="notes/a.md").click()
        problems += await shown.accessible()
        await page.get_by_role("button", name="Delete…").click()
        await page.get_by_role("button", name="Delete it").click()
        await expect(page.get_by_role("status")).to_contain_text("deleted")
        await expect(page.get_by_role("link", name="notes/a.md")).to_have_count(0)

    assert problems == []


@pytest.mark.slow
async def test_what_is_remembered_is_readable_and_kept_without_scripts(window: Window):
    async with window.open(Looks("dark", 390, scripts=False)) as shown:
        page = await shown.goto("/knowledge/memories")
        await page.get_by_text("Remember something").click()
        await page.get_by_label("User", exact=True).last.fill("ann")
        await page.get_by_label("What is so").fill("Prefers trains.")
        await page.get_by_role("button", name="Remember it").click()
        await expect(page.get_by_role("heading", name="Prefers trains.")).to_be_visible()
        await shown.goto("/knowledge/memories?user=ann")
        await expect(page.get_by_role("link", name="Prefers trains.")).to_be_visible()


@pytest.mark.slow
async def test_pages_of_what_is_remembered_are_accessible(window: Window):
    api = window.console.api
    await window.console.run(session_id="trip", user_id="ann")
    await api.put("/v1/subjects/client/acme", json={"name": "Acme", "links": []})
    facts = [{"text": "Lives in Bonn.", "category": "profile", "tier": "core"}]
    saved = (await api.post("/v1/memories", json={"user_id": "ann", "facts": facts})).json()
    begun = (await api.post("/v1/forget", json={"user_id": "nobody"})).json()
    paths = [
        "/sessions/one?id=trip",
        "/knowledge/subject?type=client&id=acme",
        f"/knowledge/forget/{begun['forget_id']}",
    ]
    paths += [f"/knowledge/memories/{saved['outcomes'][0]['fact_id']}", "/knowledge/insights", "/knowledge/forget"]
    wrong = dict[str, list[str]]()
    for looks in (Looks(), Looks("dark", 390)):
        async with window.open(looks) as shown:
            for path in paths:
                await shown.goto(path)
                wrong[f"{looks} {path}"] = await shown.accessible()

    assert {path: found for path, found in wrong.items() if found} == {}
