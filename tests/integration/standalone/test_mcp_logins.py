"""`wayline mcp login`, `logins`, `logout` and `impact`, for a tenant and for its users, as they run them."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from wayline.testkit import until
from wayline.testkit.fixtures import run
from wayline.testkit.mcp_servers import serving
from wayline.testkit.service_starts import start_command

from ..tool_registry.oauth_server import Protected
from .conftest import Installed

CONSENT_WITHIN_S = 60
SECRET = "canary-client-secret"

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def wayline(shared: Installed) -> Installed:
    """A running installation that may reach servers of this machine."""
    shared.more["WAYLINE_TOOL_REGISTRY_SERVER_ALLOWED_HOSTS"] = '["127.0.0.1:*"]'
    shared.start()
    return shared


def test_users_log_in_and_out_from_the_command_line(wayline: Installed):
    run(log_in_and_out(wayline))

    log = (wayline.data / "logs" / "wayline.log").read_text()
    assert "canary" not in log
    assert "permissions violation" not in log


async def log_in_and_out(installed: Installed) -> None:
    async def command(*words: str) -> str:
        done = await asyncio.to_thread(installed.wayline, *words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    async def run_json(*words: str) -> Any:
        return json.loads(await command(*words, "--json"))

    async def come_back(url: str, account: str) -> str:
        return (await bank.walk(url, account=account)).text

    async def logins() -> list[str]:
        return [one["user_id"] for one in (await run_json("mcp", "logins", "shop"))["logins"]]

    bank = Protected()
    bank.secret = SECRET
    async with serving(bank) as bank.url:
        client = {"client_id": "shop", "client_secret": SECRET, "issuer": bank.origin}
        file = installed.data.parent / "client.json"
        file.write_text(json.dumps(client))

        added = await command("mcp", "add", "shop", "--url", bank.url, "--oauth", "--users", "--client", str(file))
        listed = await run_json("mcp", "list")
        await come_back((await run_json("mcp", "login", "shop"))["url"], "admin")
        waiting = asyncio.create_task(command("mcp", "login", "shop", "--user", "bob", "--no-browser"))
        told = await come_back((await run_json("mcp", "login", "shop", "--user", "alice"))["url"], "alice")
        again = await come_back((await run_json("mcp", "login", "shop", "--user", "bob"))["url"], "bob")
        waited = await waiting
        both = await logins()
        out = await command("mcp", "logout", "shop", "--user", "alice")
        one = await logins()
        gone = await command("mcp", "logout", "--user", "bob")

        async def connected() -> bool:
            servers = (await asyncio.to_thread(installed.get, "/v1/mcp/servers"))["servers"]
            return {server["name"]: server["state"] for server in servers}["shop"] == "connected"

        await until(connected, why="the tenant's login stays")

    assert "log in with: wayline mcp login shop" in added
    assert SECRET not in added + json.dumps(listed)
    assert "User alice of tenant default is logged in" in told
    assert "User bob of tenant default" in again
    assert "bob is logged in to shop" in waited
    assert (both, one) == (["alice", "bob"], ["bob"])
    assert "shop is logged out for alice" in out
    assert "bob is logged out of: shop" in gone
    assert len(bank.revoked) == 2


async def open_page(installed: Installed, bank: Protected, printed: Path) -> None:
    """Do in a browser what the running command asks for."""

    def addresses() -> list[str]:
        return [line for line in printed.read_text().splitlines(keepends=True) if re.match(r"http.*\n", line)]

    [url] = map(str.strip, await until(addresses, within=CONSENT_WITHIN_S, why="the command prints an address"))
    assert url.startswith(f"http://127.0.0.1:{installed.http_port}/v1/mcp/oauth/start?state=")
    answer = await bank.walk(url)
    assert answer.status_code == 200, answer.text


async def test_a_login_connects_a_server_and_a_logout_leaves_it(wayline: Installed):
    bank, printed = Protected(), wayline.data.parent / "login.out"
    async with serving(bank) as bank.url:
        added = await asyncio.to_thread(wayline.wayline, "mcp", "add", "bank", "--url", bank.url, "--oauth")
        words = ("mcp", "login", "bank", "--no-browser")
        login = start_command(*words, cwd=wayline.data.parent, log=printed, env=wayline.env)
        await open_page(wayline, bank, printed)
        assert await login.wait(within_s=CONSENT_WITHIN_S)
        output = printed.read_text()
        impact = await asyncio.to_thread(wayline.wayline, "mcp", "impact", "bank")
        touched = await asyncio.to_thread(wayline.run_json, "mcp", "impact", "bank")
        out = await asyncio.to_thread(wayline.wayline, "mcp", "logout", "bank")
        again = await asyncio.to_thread(wayline.wayline, "mcp", "logout", "bank")
        listed = await asyncio.to_thread(wayline.run_json, "mcp", "list")

    assert "log in with: wayline mcp login bank" in added.stdout, added.stdout + added.stderr
    assert (login.process.returncode, "bank is connected" in output) == (0, True), output
    assert impact.returncode == 0 and "would fail" in impact.stdout, impact.stdout + impact.stderr
    assert [(one["tool"], one["change"], one["calls"]) for one in touched["tools"]] == [("bank__pay", "unchanged", 0)]
    assert (out.stdout.strip(), again.returncode) == ("bank is logged out", 1)
    assert again.stderr.strip() == "wayline: no login to server 'bank'"
    assert {one["name"]: one["state"] for one in listed["servers"]}["bank"] != "connected"
    assert all(token not in json.dumps(listed) + output for token in bank.given)


def test_commands_about_an_unknown_server_fail_and_say_so(wayline: Installed):
    failed = [wayline.wayline("mcp", verb, "nowhere") for verb in ("impact", "login")]

    assert [one.returncode for one in failed] == [1, 1]
    assert all("nowhere" in one.stderr for one in failed), [one.stderr for one in failed]
