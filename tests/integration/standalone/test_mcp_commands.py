"""`wayline mcp login`, `logout` and `impact` as their users run them."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys

import pytest

from wayline.testkit.mcp_servers import serving

from ..tool_registry.oauth_server import Protected
from .conftest import Installed

CONSENT_WITHIN_S = 60


async def open_page(installed: Installed, bank: Protected, process: subprocess.Popen[bytes]) -> None:
    """Do in a browser what the running command asks for."""
    assert process.stdout is not None
    url = ""
    while not url.startswith("http"):
        line = await asyncio.wait_for(asyncio.to_thread(process.stdout.readline), CONSENT_WITHIN_S)
        assert line, "the command ended without an address"
        url = line.decode().strip()
    assert url.startswith(f"http://127.0.0.1:{installed.http_port}/v1/mcp/oauth/start?state=")
    answer = await bank.walk(url)
    assert answer.status_code == 200, answer.text


def beginning(installed: Installed, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-u", "-m", "wayline.standalone", *words],
        env=installed.env,
        cwd=installed.data.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


@pytest.mark.timeout(240)
async def test_a_login_connects_a_server_and_a_logout_leaves_it(fresh: Installed):
    fresh.more["WAYLINE_TOOL_REGISTRY_SERVER_ALLOWED_HOSTS"] = '["127.0.0.1:*"]'
    await asyncio.to_thread(fresh.start)
    bank = Protected()
    async with serving(bank) as bank.url:
        added = await asyncio.to_thread(fresh.wayline, "mcp", "add", "bank", "--url", bank.url, "--oauth")
        login = beginning(fresh, "mcp", "login", "bank", "--no-browser")
        await open_page(fresh, bank, login)
        output, _ = await asyncio.to_thread(login.communicate, timeout=60)
        impact = await asyncio.to_thread(fresh.wayline, "mcp", "impact", "bank")
        touched = await asyncio.to_thread(fresh.run_json, "mcp", "impact", "bank")
        out = await asyncio.to_thread(fresh.wayline, "mcp", "logout", "bank")
        again = await asyncio.to_thread(fresh.wayline, "mcp", "logout", "bank")
        listed = await asyncio.to_thread(fresh.run_json, "mcp", "list")

    assert "log in with: wayline mcp login bank" in added.stdout, added.stdout + added.stderr
    assert (login.returncode, "bank is connected" in output.decode()) == (0, True), output
    assert impact.returncode == 0 and "would fail" in impact.stdout, impact.stdout + impact.stderr
    assert [(one["tool"], one["change"], one["calls"]) for one in touched["tools"]] == [("bank__pay", "unchanged", 0)]
    assert (out.stdout.strip(), again.returncode) == ("bank is logged out", 1)
    assert again.stderr.strip() == "wayline: no login to server 'bank'"
    assert {one["name"]: one["state"] for one in listed["servers"]}["bank"] != "connected"
    assert all(token not in json.dumps(listed) + output.decode() for token in bank.given)


@pytest.mark.timeout(240)
def test_commands_about_an_unknown_server_fail_and_say_so(fresh: Installed):
    fresh.start()

    failed = [fresh.wayline("mcp", verb, "nowhere") for verb in ("impact", "login")]

    assert [one.returncode for one in failed] == [1, 1]
    assert all("nowhere" in one.stderr for one in failed), [one.stderr for one in failed]
