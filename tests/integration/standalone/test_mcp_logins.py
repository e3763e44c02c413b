"""`wayline mcp login` for a tenant and for its users, as they run it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from wayline.testkit import until
from wayline.testkit.fixtures import run
from wayline.testkit.mcp_servers import serving

from ..tool_registry.oauth_server import Protected
from .conftest import Installed

SECRET = "canary-client-secret"


@pytest.mark.timeout(240)
def test_users_log_in_and_out_from_the_command_line(fresh: Installed):
    fresh.more["WAYLINE_TOOL_REGISTRY_SERVER_ALLOWED_HOSTS"] = '["127.0.0.1:*"]'
    fresh.start()
    run(log_in_and_out(fresh))

    log = (fresh.data / "logs" / "wayline.log").read_text()
    assert "canary" not in log
    assert "permissions violation" not in log


async def log_in_and_out(fresh: Installed) -> None:
    async def wayline(*words: str) -> str:
        done = await asyncio.to_thread(fresh.wayline, *words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    async def run_json(*words: str) -> Any:
        return json.loads(await wayline(*words, "--json"))

    async def come_back(url: str, account: str) -> str:
        return (await bank.walk(url, account=account)).text

    async def logins() -> list[str]:
        return [one["user_id"] for one in (await run_json("mcp", "logins", "bank"))["logins"]]

    bank = Protected()
    bank.secret = SECRET
    async with serving(bank) as bank.url:
        client = {"client_id": "shop", "client_secret": SECRET, "issuer": bank.origin}
        file = fresh.data.parent / "client.json"
        file.write_text(json.dumps(client))

        added = await wayline("mcp", "add", "bank", "--url", bank.url, "--oauth", "--users", "--client", str(file))
        listed = await run_json("mcp", "list")
        await come_back((await run_json("mcp", "login", "bank"))["url"], "admin")
        waiting = asyncio.create_task(wayline("mcp", "login", "bank", "--user", "bob", "--no-browser"))
        told = await come_back((await run_json("mcp", "login", "bank", "--user", "alice"))["url"], "alice")
        again = await come_back((await run_json("mcp", "login", "bank", "--user", "bob"))["url"], "bob")
        waited = await waiting
        both = await logins()
        out = await wayline("mcp", "logout", "bank", "--user", "alice")
        one = await logins()
        gone = await wayline("mcp", "logout", "--user", "bob")

        async def connected() -> bool:
            servers = (await run_json("mcp", "list"))["servers"]
            return {server["name"]: server["state"] for server in servers}["bank"] == "connected"

        await until(connected, within=30, why="the tenant's login stays")

    assert "log in with: wayline mcp login bank" in added
    assert SECRET not in added + json.dumps(listed)
    assert "User alice of tenant default is logged in" in told
    assert "User bob of tenant default" in again
    assert "bob is logged in to bank" in waited
    assert (both, one) == (["alice", "bob"], ["bob"])
    assert "bank is logged out for alice" in out
    assert "bob is logged out of: bank" in gone
    assert len(bank.revoked) == 2
