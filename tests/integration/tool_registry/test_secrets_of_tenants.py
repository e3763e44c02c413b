"""Secrets that servers refer to by name: resolved where a connection is made, and seen nowhere else."""

from __future__ import annotations

import logging
import sys
from typing import Any

import pytest
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from wayline.contracts.errors import Reject
from wayline.contracts.mcp_servers import ListServers, PutServer, ServerList, ServerReport, ServerView, TryServer
from wayline.contracts.server_config import ServerConfig
from wayline.contracts.tenant_secrets import (
    DeleteSecret,
    ListSecrets,
    PutSecret,
    RotateSecrets,
    SecretDeleted,
    SecretList,
    SecretRotation,
    SecretView,
)
from wayline.testkit import until
from wayline.testkit.mcp_servers import serving
from wayline.testkit.plain_mcp import plain_program
from wayline.tool_registry.secrets import seal_pages, sealed_rows

from .test_secrets_of_servers import NEW, OLD, dump, put, settings, tried_again, until_connected

CANARY = "canary-7d20be11"
PROGRAM = plain_program("""
import os, sys
print("not JSON", sys.argv[1], flush=True)
print("error", sys.argv[1], file=sys.stderr, flush=True)
server = MCPServer("notes")

@server.tool()
def lengths() -> str:
    return f"{len(os.environ['TOKEN'])} {len(sys.argv[1])}"

@server.tool()
def fail() -> str:
    raise ToolError(f"{sys.argv[1]} is not known")

server.run()
""")


class Behind:
    """A server below a path that only those know who have the secret, and which repeats the secret."""

    def __init__(self, secret: str) -> None:
        self.secret = secret
        self.seen: list[str] = []
        self.mcp = MCPServer("bank", instructions=f"You came by /{secret}/.")
        self.mcp.add_tool(self.pay)

    def pay(self, amount: int) -> str:
        """Pay."""
        raise ToolError(f"/{self.secret}/mcp was refused")

    def streamable_http_app(self) -> Any:
        inner = self.mcp.streamable_http_app()

        async def app(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] == "http":
                self.seen.append(dict(scope["headers"]).get(b"authorization", b"").decode())
                scope = {**scope, "path": scope["path"].removeprefix(f"/{self.secret}")}
            await inner(scope, receive, send)

        return app


async def store(platform, name: str, value: str) -> SecretView:
    return await platform.bus.ask(PutSecret(tenant=platform.tenant, name=name, value=value), SecretView)


async def delete(platform, name: str) -> SecretDeleted:
    return await platform.bus.ask(DeleteSecret(tenant=platform.tenant, name=name), SecretDeleted)


async def lengths(platform, job: str) -> str:
    return (await platform.call(platform.ask("notes__lengths", job=job))).content


def notes(platform) -> dict[str, Any]:
    file = platform.tmp_path / "notes.py"
    file.write_text(PROGRAM)
    return {
        "command": sys.executable,
        "args": [str(file), "--token=${secret:TOKEN}"],
        "env": {"TOKEN": "${secret:TOKEN}"},
    }


async def test_a_referred_secret_is_sent_and_is_seen_nowhere(platform, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    heard: list[bytes] = []

    async def hear(message) -> None:
        if not message.subject.startswith("mcp.putsecret."):
            heard.append(message.data + message.subject.encode() + repr(message.headers).encode())

    await platform.bus.nc.subscribe(">", cb=hear)
    registry = await platform.registry(platform.effects.settings(), **settings(OLD))
    stored = [await store(platform, name, CANARY) for name in ("TOKEN", "PATH")]
    bank = Behind(CANARY)
    async with serving(bank) as url:
        where = {
            "url": url.replace("/mcp", "/${secret:PATH}/mcp"),
            "headers": {"Authorization": "Bearer ${secret:TOKEN}"},
        }
        seen: list[Any] = [await put(platform, "bank", **where), await put(platform, "notes", **notes(platform))]
        await put(platform, "gone", url="http://127.0.0.1:9/${secret:PATH}")
        for name in ("bank", "notes"):
            await until_connected(platform, name)
        ask = TryServer(tenant=platform.tenant, config=ServerConfig(**where))
        seen += [await platform.bus.ask(ask, ServerReport, timeout_s=30)]
        seen += [await tried_again(platform, name) for name in ("notes", "gone")]
        replies = [
            await platform.call(platform.ask("bank__pay", {"amount": 1}, job="j1")),
            await platform.call(platform.ask("notes__fail", job="j2")),
            await platform.call(platform.ask("gone__any", job="j3")),
        ]
        sent = await lengths(platform, "j4")
    listed = await platform.bus.ask(ListSecrets(tenant=platform.tenant), SecretList)
    servers = await platform.bus.ask(ListServers(tenant=platform.tenant), ServerList)

    written = {
        "views": "".join(one.model_dump_json() + repr(one) for one in (*seen, *stored, listed, servers)),
        "replies": "".join(reply.model_dump_json() for reply in replies),
        # The bank is of this process, and logs what it is asked and what its tools raise.
        "logs": "".join(line.getMessage() for line in caplog.records if not line.name.startswith(("mcp.", "uvicorn")))
        + "".join(capfd.readouterr()),
        "spans": "".join(span.to_json() for span in registry.spans.get_finished_spans()),
        "bus": b"".join(heard).decode(errors="replace"),
        "database": await dump(platform.database.dsn),
    }
    assert {place for place, text in written.items() if CANARY in text} == set()
    assert sent == f"{len(CANARY)} {len(f'--token={CANARY}')}"
    assert f"Bearer {CANARY}" in bank.seen
    assert {one.name: one.used_by for one in listed.secrets} == {"PATH": ("bank", "gone"), "TOKEN": ("bank", "notes")}
    shown = {one.name: one.config.model_dump(mode="json") for one in servers.servers if one.config is not None}
    assert shown["bank"]["headers"] == where["headers"]
    assert (shown["bank"]["url"], shown["notes"]["env"]) == (where["url"], {"TOKEN": "${secret:TOKEN}"})
    assert "***" in written["replies"]


async def test_a_new_value_connects_its_servers_anew(platform):
    await platform.registry(platform.effects.settings(), **settings(OLD))
    await store(platform, "TOKEN", "short-one")
    await put(platform, "notes", **notes(platform))
    await until_connected(platform, "notes")

    changed = await store(platform, "TOKEN", "a-much-longer-one")

    assert changed.used_by == ("notes",)
    jobs = iter(range(1_000))

    async def is_sent() -> bool:
        return (await lengths(platform, f"j{next(jobs)}")).startswith("17 ")

    await until(is_sent, why="the program has the new value")
    with pytest.raises(Reject, match="used by notes"):
        await delete(platform, "TOKEN")


async def test_keys_change_in_two_steps_and_what_is_left_is_told(platform):
    async def registry(keys: str):
        return await platform.registry(platform.effects.settings(), **settings(keys))

    async def leave(running) -> None:
        platform.running.remove(running.service)
        await running.stop()

    async def rotate() -> SecretRotation:
        return await platform.bus.ask(RotateSecrets(tenant=platform.tenant), SecretRotation, timeout_s=30)

    async def is_rotated() -> bool:
        return (await rotate()).left == {}

    old = await registry(OLD)
    await store(platform, "TOKEN", CANARY)
    await put(platform, "bank", url="http://127.0.0.1:9/mcp", headers={"X-Key": "k-1", "X-Other": "${secret:TOKEN}"})
    await leave(old)
    # Without the old key nothing is read, and nothing is lost.
    new = await registry(NEW)
    told = await rotate()
    await leave(new)
    # The new key last: it decrypts alone.
    last = await registry(f"{OLD},{NEW}")
    before = await rotate()
    await leave(last)
    first = await registry(f"{NEW},{OLD}")
    await until(is_rotated, why="all is encrypted with the new key")
    await leave(first)

    await registry(NEW)
    await put(platform, "notes", **notes(platform))
    await until_connected(platform, "notes")

    assert (told.newest, told.encrypted, told.left, told.unknown) == ("new", 0, {"old": 2}, ("old",))
    assert (before.newest, before.encrypted, before.left) == ("old", 0, {})
    assert (await lengths(platform, "j1")).startswith(f"{len(CANARY)} ")


async def test_damaged_secrets_do_not_keep_others_under_an_old_key(platform, monkeypatch):
    monkeypatch.setattr(sealed_rows, "BATCH_ROWS", 2)
    monkeypatch.setattr(seal_pages, "PAGE_ROWS", 2)
    old = await platform.registry(platform.effects.settings(), **settings(OLD))
    for number in range(5):
        await store(platform, f"A{number}", CANARY)
    await store(platform, "WHOLE", CANARY)
    platform.running.remove(old.service)
    await old.stop()
    await platform.ledger.fetchval(
        platform.tenant, "UPDATE secrets SET sealed = sealed || '\\x00' WHERE name LIKE 'A%' RETURNING 1"
    )

    await platform.registry(platform.effects.settings(), **settings(f"{NEW},{OLD}"))
    told = await platform.bus.ask(RotateSecrets(tenant=platform.tenant), SecretRotation, timeout_s=30)

    assert told.left == {"old": 5}


async def test_an_unknown_secret_is_refused_and_one_in_clear_warned_of(platform):
    await platform.registry(platform.effects.settings(), **settings(OLD))
    config = ServerConfig(url="http://127.0.0.1:9/${secret:ABSENT}")

    with pytest.raises(Reject, match="no secret 'ABSENT'"):
        await platform.bus.ask(PutServer(tenant=platform.tenant, name="bank", config=config), ServerView)
    saved = await put(platform, "bank", url="http://127.0.0.1:9/hooks/A4x9Qz7Lm2XcV8bN1kW6/mcp")

    assert (await delete(platform, "ABSENT")).deleted is False
    assert "${secret:NAME}" in saved.warnings[0]
