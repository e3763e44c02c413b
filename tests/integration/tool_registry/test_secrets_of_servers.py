"""Secrets of tenants' servers: encrypted in the table, rotated at a start, and in no store, log, span or error."""

from __future__ import annotations

import io
import json
import logging
import sys
from base64 import b64encode
from contextlib import redirect_stderr

import asyncpg
import pytest
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from wayline.contracts.errors import Reject
from wayline.contracts.mcp_servers import (
    GetServer,
    ListServers,
    PutServer,
    ServerList,
    ServerReport,
    ServerView,
    TrySavedServer,
    TryServer,
)
from wayline.contracts.server_config import ServerConfig
from wayline.contracts.tools import ListTools, ToolList
from wayline.testkit import until
from wayline.testkit.mcp_servers import serving
from wayline.testkit.plain_mcp import plain_program

CANARY = "canary-4d1f9e"
OLD, NEW = (f"{name}:{b64encode(bytes([byte]) * 32).decode()}" for name, byte in (("old", 1), ("new", 2)))
LEAKY = plain_program("""
import os, sys
print("not JSON", os.environ["TOKEN"], flush=True)
print("error", os.environ["TOKEN"], file=sys.stderr, flush=True)
server = MCPServer("leaky")

@server.tool()
def fail() -> str:
    raise ToolError(f"401: the key {os.environ['TOKEN']} is not known")

@server.tool()
def show() -> dict[str, str]:
    return {"kept": "as it is", "token": os.environ["TOKEN"]}

@server.tool()
def length() -> str:
    return str(len(os.environ["TOKEN"]))

server.run()
""")
DYING = """
import os, sys
print(os.environ["TOKEN"], flush=True)
sys.exit(os.environ["TOKEN"])
"""


async def put(platform, name: str, **config) -> ServerView:
    ask = PutServer(tenant=platform.tenant, name=name, config=ServerConfig(**config))
    return await platform.bus.ask(ask, ServerView)


async def view(platform, name: str) -> ServerView:
    return await platform.bus.ask(GetServer(tenant=platform.tenant, name=name), ServerView)


async def tried(platform, **config) -> ServerReport:
    ask = TryServer(tenant=platform.tenant, config=ServerConfig(**config))
    return await platform.bus.ask(ask, ServerReport, timeout_s=30)


async def tried_again(platform, name: str) -> ServerReport:
    return await platform.bus.ask(TrySavedServer(tenant=platform.tenant, name=name), ServerReport, timeout_s=30)


async def until_connected(platform, name: str) -> None:
    async def is_connected() -> bool:
        return (await view(platform, name)).state == "connected"

    await until(is_connected, why=f"{name} is connected")


def program(platform, name: str, text: str, secret: str = CANARY) -> dict:
    file = platform.tmp_path / f"{name}.py"
    file.write_text(text)
    return {"command": sys.executable, "args": [str(file)], "env": {"TOKEN": secret}}


def settings(keys: str) -> dict:
    return {
        "keys": keys,
        "commands": [{"command": sys.executable, "env": ["TOKEN"]}],
        "server_allowed_hosts": ["127.0.0.1:*"],
    }


async def key_ids(platform) -> set[str]:
    return {row["key_id"] for row in await platform.ledger.fetch(platform.tenant, "SELECT key_id FROM servers")}


async def test_a_new_first_key_encrypts_what_an_older_one_did(platform):
    before = await platform.registry(platform.effects.settings(), **settings(OLD))
    await put(platform, "leaky", **program(platform, "leaky", LEAKY))
    assert await key_ids(platform) == {"old"}
    platform.running.remove(before.service)
    await before.stop()

    between = await platform.registry(platform.effects.settings(), **settings(f"{NEW},{OLD}"))

    async def is_rotated() -> bool:
        return await key_ids(platform) == {"new"}

    await until(is_rotated, why="the secrets are encrypted with the new key")
    platform.running.remove(between.service)
    await between.stop()
    await platform.registry(platform.effects.settings(), **settings(NEW))
    await until_connected(platform, "leaky")
    reply = await platform.call(platform.ask("leaky__length"))
    assert reply.content == str(len(CANARY))


async def test_a_server_whose_key_is_missing_is_away_and_says_so(platform):
    before = await platform.registry(platform.effects.settings(), **settings(OLD))
    await put(platform, "leaky", **program(platform, "leaky", LEAKY))
    platform.running.remove(before.service)
    await before.stop()

    await platform.registry(platform.effects.settings(), **settings(NEW))

    async def says_so() -> bool:
        return "which WAYLINE_TOOL_REGISTRY_KEYS does not hold" in (await view(platform, "leaky")).why

    await until(says_so, why="the server names the missing key")


async def test_a_server_whose_key_is_missing_can_be_saved_anew(platform):
    before = await platform.registry(platform.effects.settings(), **settings(OLD))
    await put(platform, "leaky", **program(platform, "leaky", LEAKY))
    platform.running.remove(before.service)
    await before.stop()
    await platform.registry(platform.effects.settings(), **settings(NEW))

    await put(platform, "leaky", **program(platform, "leaky", LEAKY))
    await until_connected(platform, "leaky")

    assert await key_ids(platform) == {"new"}


async def test_a_row_moved_to_another_server_cannot_be_opened(platform):
    await platform.registry(platform.effects.settings(), **settings(OLD), reread_every_s=0.1)
    await put(platform, "leaky", **program(platform, "leaky", LEAKY))

    moved = """
        INSERT INTO servers (tenant, name, config, key_id, sealed)
        SELECT tenant, 'thief', config, key_id, sealed FROM servers WHERE name = 'leaky'
    """
    await platform.ledger.execute(platform.tenant, moved)

    async def is_refused() -> bool:
        return "its secrets are damaged" in (await view(platform, "thief")).why

    await until(is_refused, why="the moved secrets are refused")


async def test_a_secret_is_in_no_store_log_span_or_error(platform, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    heard: list[bytes] = []

    async def hear(message) -> None:
        if not message.subject.startswith(("mcp.put.", "mcp.try.")):
            heard.append(message.data + message.subject.encode() + repr(message.headers).encode())

    await platform.bus.nc.subscribe(">", cb=hear)
    written = io.StringIO()
    with redirect_stderr(written):
        registry = await platform.registry(platform.effects.settings(), **settings(OLD))
        seen = [await put(platform, "leaky", **program(platform, "leaky", LEAKY))]
        seen.append(await put(platform, "dying", **program(platform, "dying", DYING)))
        # A server over HTTP that repeats its key and its query in its errors.
        bank = MCPServer("bank", instructions=f"You sent {CANARY}-header.")

        @bank.tool(description=f"Pay with {CANARY}-header.")
        def pay(amount: int) -> str:
            raise ToolError(f"{CANARY}-header was refused")

        async with serving(bank) as url:
            where = {"url": f"{url}?key={CANARY}-query", "headers": {"Authorization": f"Bearer {CANARY}-header"}}
            seen.append(await put(platform, "bank", **where))
            seen.append(await put(platform, "gone", url=f"http://127.0.0.1:9/{'x'}?key={CANARY}"))
            await until_connected(platform, "bank")
            await until_connected(platform, "leaky")
            seen += [await tried(platform, **where), await tried(platform, **program(platform, "dying", DYING))]
            seen += [await tried_again(platform, name) for name in ("bank", "leaky", "dying", "gone")]
            replies = [
                await platform.call(platform.ask("bank__pay", {"amount": 1}, job="j1")),
                await platform.call(platform.ask("bank__pay", {"amount": CANARY[:3]}, job="j2")),
                await platform.call(platform.ask("leaky__fail", job="j3")),
                await platform.call(platform.ask("dying__any", job="j4")),
                await platform.call(platform.ask("gone__any", job="j5")),
                await platform.call(platform.ask("leaky__show", job="j6")),
            ]
        seen += (await platform.bus.ask(ListServers(tenant=platform.tenant), ServerList)).servers
        seen.append(await platform.bus.ask(ListTools(tenant=platform.tenant), ToolList))
        refusals = []
        for wrong in ({"url": f"http://u:{CANARY}@h/mcp"}, {"command": "sh", "env": {"A": CANARY}}):
            with pytest.raises(Reject) as refused:
                await put(platform, "wrong", **wrong)
            refusals.append(str(refused.value))

    written = {
        "views": "".join(one.model_dump_json() + repr(one) for one in seen),
        "replies": "".join(reply.model_dump_json() for reply in replies),
        "refusals": "".join(refusals),
        # The bank is of this process, and logs what its tools raise.
        "logs": "".join(line.getMessage() for line in caplog.records if not line.name.startswith("mcp.server"))
        + written.getvalue()
        + "".join(capfd.readouterr()),
        "spans": "".join(span.to_json() for span in registry.spans.get_finished_spans()),
        "bus": b"".join(heard).decode(errors="replace"),
        "database": await dump(platform.database.dsn),
    }
    assert {where for where, text in written.items() if CANARY in text} == set()
    assert "leaky" in written["views"]
    assert "leaky" in written["database"]
    assert "leaky" in written["spans"]
    assert replies[2].status == "failed"
    assert json.loads(replies[5].content) == {"kept": "as it is", "token": "***"}


async def dump(dsn: str) -> str:
    """Return every row of every table of ours as text, bytes as they are."""
    conn = await asyncpg.connect(dsn)
    try:
        tables = await conn.fetch("SELECT schemaname, tablename FROM pg_tables WHERE schemaname = 'tools'")
        rows = [row for table in tables for row in await conn.fetch(f'SELECT * FROM "tools"."{table["tablename"]}"')]
        return "".join(repr(dict(row)) for row in rows)
    finally:
        await conn.close()
