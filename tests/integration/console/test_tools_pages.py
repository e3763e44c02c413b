"""Tools in the console, on the whole platform: found, looked at, called once."""

from __future__ import annotations

import re

import pytest

from .conftest import Console

pytestmark = [pytest.mark.asyncio(loop_scope="module")]


async def test_the_catalogue_leads_to_each_tool(console: Console):
    async with console.browser() as browser:
        await browser.open("/tools")
        addresses = re.findall(r'href="(/tools/named/[a-z_]+)"', browser.page)
        found = await browser.open("/tools?q=do arithmetic")
        refused = await browser.open("/tools?q=x&agent=nobody")
        page = await browser.open("/tools/named/calculator")
        missing = await browser.open("/tools/named/nothing")

    assert "/tools/named/calculator" in addresses and "/tools/named/calculator" in found.text
    assert (refused.status_code, 'role="alert"' in refused.text) == (422, True)
    assert 'name="argument:expression"' in page.text
    assert missing.status_code == 404


async def test_a_tool_is_called_by_its_fields_or_as_json(console: Console):
    address = "/tools/named/calculator/call"
    async with console.browser() as browser:
        await browser.open("/tools/named/calculator")
        by_fields = await browser.send(address, how="fields", key="a", **{"argument:expression": "2^10"})
        as_json = await browser.send(address, how="raw", key="b", raw='{"expression": "2^11"}')
        broken = await browser.send(address, how="raw", key="c", raw="{")
        wrong = await browser.send(address, how="raw", key="d", raw='{"expresion": "1"}')

    assert (by_fields.status_code, "1024" in by_fields.text) == (200, True)
    assert "2048" in as_json.text
    assert (broken.status_code, "it is no JSON" in broken.text) == (422, True)
    assert "invalid_arguments" in wrong.text
