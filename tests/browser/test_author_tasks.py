"""What an author of agents does in Chromium: an MCP server is added, tested and approved, an agent made and tried."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest
from mcp.server import MCPServer
from playwright.async_api import expect
from pydantic import SecretStr

from wayline.testkit import until
from wayline.testkit.mcp_servers import serving
from wayline.tool_registry.settings import Settings as RegistrySettings

from ..integration.console.conftest import Console
from .conftest import ALL, NO_SCRIPTS, Looks, Window, slow

pytestmark = [pytest.mark.asyncio(loop_scope="module")]
SETTINGS = {
    "tool_registry": RegistrySettings(
        server_allowed_hosts=("127.0.0.1:*",),
        keys=SecretStr(f"k1:{b64encode(bytes(range(32))).decode()}"),
        probe_every_s=0.1,
    )
}


def pay(amount: int) -> str:
    return f"paid {amount}"


def pay_in(amount: int, currency: str) -> str:
    return f"paid {amount} {currency}"


async def server(console: Console, name: str, **wanted: Any) -> dict[str, Any]:
    """Return a server once its fields are as wanted."""

    async def found() -> dict[str, Any]:
        view = (await console.api.get(f"/v1/mcp/servers/{name}")).json()
        return view if all(view[field] == value for field, value in wanted.items()) else {}

    return await until(found, why=f"{name} is {wanted}")


@slow(*ALL)
async def test_a_server_is_added_tested_and_its_change_approved(window: Window, looks: Looks):
    bank = MCPServer("bank", version="3.1")
    bank.tool(name="pay", description="Pay a bill.")(pay)
    name = f"bank-{looks.theme}-{looks.width}"
    async with serving(bank) as url, window.open(looks) as shown:
        page = await shown.goto("/tools")
        await page.get_by_role("link", name="Add server").click()
        await page.get_by_label("Name", exact=True).fill(name)
        await page.locator("[name=transport][value=http]").check()
        await page.get_by_label("URL", exact=True).fill(url)
        problems = await shown.accessible()
        await page.get_by_role("button", name="Test connection").click()
        await expect(page.get_by_role("status")).to_contain_text("It can be connected to: bank 3.1")
        await page.get_by_label("Effect of pay").select_option("once")
        problems += await shown.accessible()
        await page.get_by_role("button", name="Save", exact=True).click()
        await expect(page.get_by_role("status")).to_have_text("It is saved.")
        await server(window.console, name, state="connected", tools=1)

        bank.remove_tool("pay")
        bank.tool(name="pay", description="Pay a bill in any currency.")(pay_in)
        await server(window.console, name, quarantined=1)
        await page.reload()
        await expect(page.get_by_role("heading", name="Changed definitions")).to_be_visible()
        problems += await shown.accessible()
        await page.get_by_role("button", name="Approve what is ticked").click()
        await expect(page.get_by_role("status")).to_contain_text("The definitions are approved")
        await server(window.console, name, state="connected", tools=1, quarantined=0)
        await page.reload()
        problems += await shown.accessible()

    assert problems == []


@slow(*ALL)
async def test_an_agent_is_made_and_tried(window: Window, looks: Looks):
    window.console.answers("It is **noon**.")
    name = f"teller-{looks.theme}-{looks.width}"
    async with window.open(looks) as shown:
        page = await shown.goto("/agents")
        await page.get_by_role("link", name="New agent").click()
        await page.get_by_label("Name", exact=True).fill(name)
        await page.get_by_label("Instructions", exact=True).fill("You tell the time.")
        await page.locator("[name=model]").select_option("chat/scripted")
        await expect(page.locator("#check")).to_contain_text("It can be saved, and its jobs can run.")
        problems = await shown.accessible()
        await page.get_by_role("button", name="Save", exact=True).click()
        await expect(page.get_by_role("status")).to_contain_text("The agent is saved")
        problems += await shown.accessible()
        await page.get_by_role("link", name="Try it").click()
        await page.get_by_label("Input").fill("What time is it?")
        await page.get_by_role("button", name="Try it").click()
        await expect(page.locator("#answers strong")).to_have_text("noon")
        problems += await shown.accessible()

    assert problems == []


@slow(*ALL, *NO_SCRIPTS)
async def test_an_answer_with_fields_is_written_in_rows(window: Window, looks: Looks):
    name = f"clerk-{looks.theme}-{looks.width}{'' if looks.scripts else '-bare'}"
    await window.console.save(name)
    async with window.open(looks) as shown:
        page = await shown.goto(f"/agents/{name}")
        section = page.locator("details", has=page.get_by_role("heading", name="Answer"))
        await section.locator("summary").first.click()
        await page.get_by_label("Field 1: name").fill("lines")
        await page.get_by_label("Field 1: kind").select_option("fields of its own")
        await page.get_by_label("Field 1: a list of these").check()
        await section.get_by_role("button", name="Add rows").click()
        await page.get_by_label("Field 1.1: name").fill("kind")
        await page.get_by_label("Field 1.1: kind").select_option("one of some words")
        await page.get_by_label("Field 1.1: required").check()
        problems = await shown.accessible() if looks.scripts else []
        await page.get_by_role("button", name="Check").click()
        await expect(page.locator("[id='error-output_schema.0.0']")).to_have_text(
            "write the words that it may be, one a line"
        )
        await page.get_by_label("Field 1.1: words").fill("work\npart")
        problems += await shown.accessible() if looks.scripts else []
        await page.get_by_role("button", name="Save a new version").click()
        await expect(page.get_by_role("status")).to_contain_text("The agent is saved")

    assert problems == []
    saved = (await window.console.api.get(f"/v1/agents/{name}")).json()
    line = {
        "type": "object",
        "properties": {"kind": {"type": "string", "enum": ["work", "part"]}},
        "required": ["kind"],
    }
    assert saved["config"]["output_schema"] == {
        "type": "object",
        "properties": {"lines": {"type": "array", "items": line}},
    }
