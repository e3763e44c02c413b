"""Trying a server's configuration: what it offers is reported, nothing is stored, and the guards are a saved one's."""

from __future__ import annotations

import asyncio
import os
import sys
from base64 import b64encode
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from mcp.server import MCPServer
from mcp.server.lowlevel import Server

from wayline.contracts.errors import Reject
from wayline.contracts.mcp_servers import (
    EnableServer,
    GetImpact,
    GetServer,
    OfferedCounts,
    PutServer,
    ServerReport,
    ServerView,
    TrySavedServer,
    TryServer,
)
from wayline.contracts.server_config import MASK, ServerConfig
from wayline.contracts.tools import Effect
from wayline.testkit import until
from wayline.testkit.mcp_servers import serving
from wayline.testkit.plain_mcp import plain_program
from wayline.testkit.walks import cases
from wayline.tool_registry.definitions.definitions import TOOLS_MAX

CANARY = "canary-77ab01"
KEYS = f"k1:{b64encode(bytes(range(32))).decode()}"
ALLOWED: dict[str, Any] = {
    "keys": KEYS,
    "commands": [{"command": sys.executable, "env": ["TOKEN"]}],
    # The program tells where it runs.
    "programs": "unconfined",
    "server_allowed_hosts": ["127.0.0.1:*"],
}
KEYLESS = '{"jsonrpc": "2.0", "id": null, "error": {"code": -32001, "message": "no key"}}'
NOTES = plain_program("""
import os, sys
from pathlib import Path
Path(sys.argv[1]).write_text(f"{os.getpid()} {os.getcwd()}")
print("started with", os.environ.get("TOKEN"), file=sys.stderr, flush=True)
if "silent" in sys.argv:
    sys.stdin.read()
if "dies" in sys.argv:
    sys.exit("no key " + os.environ.get("TOKEN", "") + chr(27) + "[31m")
server = MCPServer("notes", instructions="Keep notes.")

@server.tool()
def note(text: str) -> str:
    return text

server.run()
""")


def program(platform, *args: str, **more: Any) -> dict[str, Any]:
    """A server that is a program; it writes its process and directory to `trace`."""
    file = platform.tmp_path / "notes.py"
    file.write_text(NOTES)
    return {"command": sys.executable, "args": [str(file), str(trace(platform)), *args], **more}


def trace(platform) -> Path:
    return platform.tmp_path / "trace"


async def tried(platform, name: str | None = None, **config: Any) -> ServerReport:
    ask = TryServer(tenant=platform.tenant, name=name, config=ServerConfig(**config))
    return await platform.bus.ask(ask, ServerReport, timeout_s=30)


async def tried_again(platform, name: str) -> ServerReport:
    return await platform.bus.ask(TrySavedServer(tenant=platform.tenant, name=name), ServerReport, timeout_s=30)


async def put(platform, name: str, **config: Any) -> None:
    await platform.bus.ask(PutServer(tenant=platform.tenant, name=name, config=ServerConfig(**config)), ServerView)


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def is_deleted(directory: str) -> bool:
    return not Path(directory).exists()


def bank() -> MCPServer:
    server = MCPServer("bank", version="3.1", instructions="Pays bills.\u202e")

    @server.tool()
    def pay(amount: int) -> str:
        """Pay a bill.\x1b[2K"""
        return str(amount)

    @server.tool()
    def rate() -> str:
        """Tell a rate."""
        return "1"

    @server.resource("bank://terms")
    def terms() -> str:
        return "none"

    @server.prompt()
    def remind() -> str:
        return "Remind them."

    return server


async def test_a_report_names_server_tools_resources_and_prompts(platform):
    await platform.registry(platform.effects.settings(), **ALLOWED)

    async with serving(bank()) as url:
        report = await tried(platform, url=url, effects={"rate": "read"})

    assert report.ok, report.why
    assert (report.server, report.version, report.instructions) == ("bank", "3.1", "Pays bills.\\u202e")
    assert [(tool.name, tool.description, tool.effect) for tool in report.tools] == [
        ("pay", "Pay a bill.\\u001b[2K", Effect.ONCE),
        ("rate", "Tell a rate.", Effect.READ),
    ]
    assert all(0 < tool.tokens < 100 for tool in report.tools)
    assert (report.resources, report.prompts) == (("bank://terms",), ("remind",))
    assert report.counts == OfferedCounts(tools=2, resources=1, prompts=1)
    assert report.protocol >= "2025-11-25"
    assert report.took_ms > 0


def offering(*tools: tuple[str, dict[str, Any]]) -> Server[Any]:
    """A server whose tools have these names and schemas."""
    listed = [types.Tool(name=name, input_schema=schema) for name, schema in tools]

    async def list_tools(*_: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=listed)

    return Server("collection", on_list_tools=list_tools)


ANY = {"type": "object"}
BAD = {"type": "object", "properties": {"x": {"type": "nonsense\u202e"}}}
UNUSABLE = (("a.b", ANY), ("a_b", ANY), ("bad", BAD), ("good", ANY))


async def test_a_report_names_tools_that_would_be_left_out(platform):
    await platform.registry(platform.effects.settings(), **ALLOWED)

    async with serving(offering(*UNUSABLE)) as url:
        report = await tried(platform, url=url)

    assert report.ok, report.why
    assert [tool.name for tool in report.tools] == ["a.b", "a_b", "good"]
    assert report.counts.tools == 4
    assert report.problems[0].startswith(
        "bad is left out: its schema cannot be used ($.properties.x.type: 'nonsense\\u202e' is not a type of JSON)"
    )
    assert len(report.problems) == 1


async def test_a_server_with_too_many_tools_is_reported_as_refused(platform):
    await platform.registry(platform.effects.settings(), **ALLOWED)

    async with serving(offering(*((f"t{number}", ANY) for number in range(TOOLS_MAX + 1)))) as url:
        report = await tried(platform, url=url)

    assert (report.ok, report.why) == (False, "it offers 2001 tools, and at most 2000 are taken")


async def test_a_saved_server_names_tools_that_are_left_out(platform):
    await platform.registry(platform.effects.settings(), **ALLOWED)

    async def view() -> ServerView:
        return await platform.bus.ask(GetServer(tenant=platform.tenant, name="mine"), ServerView)

    async def is_connected() -> bool:
        return (await view()).state == "connected"

    async with serving(offering(*UNUSABLE)) as url:
        await put(platform, "mine", url=url)
        await until(is_connected, why="the server is connected")
        found = await view()

    assert (found.tools, found.left_out) == (3, 1)
    assert [line.split(":")[0] for line in found.problems] == ["bad is left out"]


async def test_a_tried_program_is_confined_and_leaves_nothing(platform):
    await platform.registry(platform.effects.settings(), **ALLOWED)

    report = await tried(platform, **program(platform, env={"TOKEN": CANARY}))

    pid, directory = trace(platform).read_text().split()
    assert [tool.name for tool in report.tools] == ["note"]
    assert is_gone(int(pid))
    assert directory != os.getcwd()
    assert is_deleted(directory)
    assert not await platform.ledger.fetch(platform.tenant, "SELECT name FROM servers")


async def test_a_program_that_never_answers_is_given_up_and_ended(platform):
    await platform.registry(platform.effects.settings(), **ALLOWED, try_timeout_s=3)

    report = await tried(platform, **program(platform, "silent", env={"TOKEN": CANARY}))

    assert (report.ok, "within 3 s" in report.why) == (False, True)
    assert "started with ***" in report.errors
    await until(lambda: is_gone(int(trace(platform).read_text().split()[0])), why="the program has ended")


async def test_a_program_that_dies_is_reported_without_its_secret(platform):
    await platform.registry(platform.effects.settings(), **ALLOWED)

    report = await tried(platform, **program(platform, "dies", env={"TOKEN": CANARY}))

    assert not report.ok
    assert report.errors.endswith("no key ***\\u001b[31m")
    assert CANARY not in report.model_dump_json()


async def test_a_program_that_is_not_allowed_is_not_tried(platform):
    await platform.registry(platform.effects.settings(), keys=KEYS)

    with pytest.raises(Reject, match="WAYLINE_TOOL_REGISTRY_COMMANDS"):
        await tried(platform, **program(platform))

    assert not trace(platform).exists()


async def test_a_variable_that_decides_what_runs_is_not_tried(platform):
    await platform.registry(platform.effects.settings(), **ALLOWED)

    for env in (
        {"LD_PRELOAD": "/tmp/evil.so"},
        {"PYTHONWARNINGS": "all:0:antigravity.x:0:0", "BROWSER": f"/bin/sh -c 'touch {trace(platform)}' #%s"},
    ):
        refused = f"{', '.join(env)} in `env`: WAYLINE_TOOL_REGISTRY_COMMANDS allows "
        with pytest.raises(Reject, match=refused):
            await tried(platform, **program(platform, env=env))

    assert not trace(platform).exists()


async def test_a_private_address_is_not_tried(platform):
    await platform.registry(platform.effects.settings(), keys=KEYS)

    for host in ("127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "169.254.169.254"):
        report = await tried(platform, url=f"http://{host}:{platform.effects.port}/mcp?key={CANARY}")

        assert (report.ok, "SERVER_ALLOWED_HOSTS" in report.why) == (False, True), report.why
        assert CANARY not in report.why


async def test_masks_stand_for_a_saved_servers_secrets(platform):
    await platform.registry(platform.effects.settings(), **ALLOWED)
    await put(platform, "notes", **program(platform, "dies", env={"TOKEN": CANARY}))
    masked = program(platform, "dies", env={"TOKEN": MASK})

    report = await tried(platform, name="notes", **masked)

    assert report.errors.endswith("no key ***\\u001b[31m")
    with pytest.raises(Reject, match="none is stored"):
        await tried(platform, **masked)


async def test_masks_send_no_secret_to_another_url(platform):
    await platform.registry(platform.effects.settings(), **ALLOWED)
    heard: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read(10_000))
        writer.close()

    thief = await asyncio.start_server(answer, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{thief.sockets[0].getsockname()[1]}/evil?{MASK}"
    masked: dict[str, Any] = {"url": url, "headers": {"Authorization": MASK}}
    async with serving(bank()) as mine:
        await put(platform, "bank", url=f"{mine}?key={CANARY}", headers={"Authorization": CANARY})

        for asking in (
            TryServer(tenant=platform.tenant, name="bank", config=ServerConfig(**masked)),
            PutServer(tenant=platform.tenant, name="bank", config=ServerConfig(**masked)),
            GetImpact(tenant=platform.tenant, name="bank", config=ServerConfig(**masked)),
        ):
            with pytest.raises(Reject, match="none is stored for this scheme, host and port"):
                await platform.bus.ask(asking, type(asking).replies)
    thief.close()

    assert heard == []


@pytest.mark.parametrize(
    ("status", "headers", "body", "why"),
    cases(
        [
            (
                401,
                {"WWW-Authenticate": "Bearer"},
                "<p>no</p>",
                "401 Unauthorized: it needs a login (`wayline mcp add … --oauth`)",
            ),
            (
                401,
                {},
                '{"error": "no key"}',
                "401 Unauthorized: its key in `headers` is missing or wrong; it says: no key",
            ),
            (401, {}, KEYLESS, "401 Unauthorized: its key in `headers` is missing or wrong; it says: no key"),
            (403, {}, '{"error": "closed"}', "the server answered 403 Forbidden; it says: closed"),
            (403, {"Content-Encoding": "gzip"}, "x", "the server answered 403 Forbidden"),
            (599, {}, "", "the server answered 599"),
            (
                500,
                {},
                '{"jsonrpc": "2.0", "id": null, "error": {"code": -32603, "message": "out of ink"}}',
                "out of ink",
            ),
        ]
    ),
)
async def test_a_refused_connection_names_the_status(platform, status: int, headers: dict, body: str, why: str):
    await platform.registry(platform.effects.settings(), **ALLOWED)

    async def refuse(_: web.Request) -> web.Response:
        kind = "application/json" if body.startswith("{") else "text/html"
        return web.Response(status=status, headers=headers, body=body.encode(), content_type=kind)

    app = web.Application()
    app.router.add_route("*", "/mcp", refuse)
    server = TestServer(app)
    await server.start_server()
    report = await tried(platform, url=str(server.make_url("/mcp")))
    await server.close()

    assert (report.ok, why in report.why) == (False, True), report.why


async def test_a_disabled_server_can_be_tried_again(platform):
    await platform.registry(platform.effects.settings(), **ALLOWED)
    async with serving(bank()) as url:
        await put(platform, "bank", url=url)
        await platform.bus.ask(EnableServer(tenant=platform.tenant, name="bank", enabled=False), ServerView)

        report = await tried_again(platform, "bank")

    assert report.counts.tools == 2


async def test_a_saved_program_no_longer_allowed_is_not_tried(platform):
    before = await platform.registry(platform.effects.settings(), **ALLOWED)
    await put(platform, "notes", **program(platform))
    await before.stop()
    trace(platform).unlink(missing_ok=True)
    await platform.registry(platform.effects.settings(), keys=KEYS)

    with pytest.raises(Reject, match="WAYLINE_TOOL_REGISTRY_COMMANDS"):
        await tried_again(platform, "notes")
    with pytest.raises(Reject, match="no server 'none'"):
        await tried_again(platform, "none")

    assert not trace(platform).exists()
