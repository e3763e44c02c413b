"""An MCP server whose tools have effects that can be counted: one line in a file for each.

`python -m wayline.testkit.effects_server --port P --file PATH --delay-ms 200` serves `http://127.0.0.1:P/mcp`. A tool
waits the delay, appends `<tool> <key>` to the file, syncs it, and only then answers: whatever happened to the answer,
the file's lines are the effects that took place.
"""

import argparse
import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Self

from wayline.testkit.waiting import until

KEY = "wayline/key"
RECONCILE = "wayline/reconcile"
COST = "wayline/cost_usd"

EFFECTS = {
    "pay_once": "once",
    "put_idempotent": "idempotent",
    "book_reconcile": "reconcile",
    "look_read": "read",
}
START_WITHIN_S = 90.0


@dataclass
class EffectsServer:
    """The server as a process of its own, for a test to start, count, kill and start again."""

    file: Path
    delay_ms: int = 0
    port: int = 0
    described_as: str = ""
    """What `pay_once` says of itself from its next start on; empty: what it always says."""
    asking: bool = False
    """Whether there is a tool `send_once` from its next start on, which asks a person from which account it sends."""
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def settings(self, **more: Any) -> dict[str, Any]:
        """Return this server as an entry of `WAYLINE_TOOL_REGISTRY_SERVERS`."""
        effects = EFFECTS | ({"send_once": "once"} if self.asking else {})
        return {"name": "effects", "url": self.url, "effects": effects, **more}

    async def start(self) -> Self:
        """Start it, on the same port as before if it ran already; it accepts connections when this returns."""
        self.port = self.port or _free_port()
        command = [sys.executable, "-m", "wayline.testkit.effects_server", "--port", str(self.port)]
        command += ["--file", str(self.file), "--delay-ms", str(self.delay_ms), "--described-as", self.described_as]
        command += ["--asking"] if self.asking else []
        # Not asyncio's: a server may outlive the event loop of the test that started it.
        self.process = subprocess.Popen(command)  # noqa: ASYNC220
        await until(self._accepts, within=START_WITHIN_S, why="the effects server accepts connections")
        return self

    def _accepts(self) -> bool:
        assert self.process is not None and self.process.poll() is None, "the effects server ended at its start"
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def kill(self) -> None:
        """Kill the server as a crash would."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def pause(self) -> None:
        """Freeze the server: a running tool has no effect until it is resumed."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Resume the paused server."""
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def calls(self) -> list[tuple[str, str]]:
        """Return every effect so far as `(tool, key)`, oldest first."""
        text = self.file.read_text() if self.file.exists() else ""
        return [(tool, key) for tool, _, key in (line.partition(" ") for line in text.splitlines())]

    def amounts(self) -> list[int]:
        """Return what `pay_once` has paid, oldest first."""
        paid = self.file.with_name(f"{self.file.name}.paid")
        return [int(line) for line in paid.read_text().splitlines()] if paid.exists() else []

    def has_begun(self, tool: str, key: str | None = None) -> bool:
        """Return whether a call of a tool has reached the server, the one under a key or any."""
        begun = begun_beside(self.file)
        lines = begun.read_text().splitlines() if begun.exists() else []
        return any(line == f"{tool} {key}" if key else line.startswith(f"{tool} ") for line in lines)

    def count(self, tool: str, key: str | None = None) -> int:
        """Count how often a tool acted, for one key or for all."""
        return sum(1 for called, by in self.calls() if called == tool and key in {None, by})

    def repeated(self, tool: str) -> dict[str, int]:
        """Return the keys under which a tool acted more than once."""
        counted = Counter(key for called, key in self.calls() if called == tool)
        return {key: n for key, n in counted.items() if n > 1}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def begun_beside(file: Path) -> Path:
    """Return the file of the calls that have reached the server, whatever becomes of them."""
    return file.with_name(f"{file.name}.begun")


def _append(file: Path, line: bytes) -> None:
    handle = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(handle, line)
        os.fsync(handle)
    finally:
        os.close(handle)


class Effects:
    """The work of the tools: wait, write the line, and remember which keys are under way."""

    def __init__(self, file: Path, delay_s: float) -> None:
        self._file = file
        self._delay_s = delay_s
        self._under_way: dict[str, asyncio.Event] = {}

    async def act(self, tool: str, key: str) -> str:
        """Act once for this call."""
        ended = self._under_way[key] = asyncio.Event()
        _append(begun_beside(self._file), f"{tool} {key}\n".encode())
        try:
            await asyncio.sleep(self._delay_s)
            _append(self._file, f"{tool} {key}\n".encode())
        finally:
            ended.set()
            self._under_way.pop(key, None)
        return f"{tool} done"

    async def outcome(self, tool: str, key: str) -> dict[str, Any]:
        """Return what became of a key; wait for one under way, so that `found: false` is a promise."""
        if running := self._under_way.get(key):
            await running.wait()
        found = self._file.exists() and f"{tool} {key}" in self._file.read_text().splitlines()
        return {"found": found, "content": f"{tool} done" if found else None}


def serve(file: Path, *, port: int, delay_ms: int, described_as: str = "", asking: bool = False) -> None:
    """Serve the four tools, and the one that asks, until the process is ended."""
    from mcp.server import MCPServer
    from mcp.server.mcpserver import Context
    from mcp_types import CallToolResult, TextContent, ToolAnnotations

    effects = Effects(file, delay_ms / 1000)
    server = MCPServer("effects", log_level="WARNING")

    def result(text: str, **meta: Any) -> CallToolResult:
        return CallToolResult(content=[TextContent(type="text", text=text)], _meta=meta or None)

    def meta(ctx: Context) -> dict[str, Any]:
        return dict(ctx.request_context.meta or {})

    async def pay_once(ctx: Context, amount: int = 1) -> CallToolResult:
        """Pay an amount; paying twice is paying twice."""
        done = await effects.act("pay_once", meta(ctx).get(KEY, "-"))
        _append(file.with_name(f"{file.name}.paid"), f"{amount}\n".encode())
        return result(done, **{COST: "0.01"})

    async def put_idempotent(ctx: Context, value: str = "") -> CallToolResult:
        """Put a value; the same key again changes nothing."""
        return result(await effects.act("put_idempotent", meta(ctx).get(KEY, "-")))

    async def book_reconcile(ctx: Context, what: str = "") -> CallToolResult:
        """Book something; the key tells later whether it was booked."""
        key = meta(ctx).get(KEY, "-")
        if meta(ctx).get(RECONCILE):
            return result(json.dumps(await effects.outcome("book_reconcile", key)))
        return result(await effects.act("book_reconcile", key))

    async def look_read(ctx: Context, query: str = "") -> CallToolResult:
        """Look something up; changes nothing but the count."""
        return result(await effects.act("look_read", meta(ctx).get(KEY, "-")))

    pay_once.__doc__ = described_as or pay_once.__doc__
    for tool, hints in (
        (pay_once, ToolAnnotations(destructive_hint=True)),
        (put_idempotent, ToolAnnotations(idempotent_hint=True)),
        (book_reconcile, ToolAnnotations()),
        (look_read, ToolAnnotations(read_only_hint=True)),
    ):
        server.tool(annotations=hints, structured_output=False)(tool)
    if asking:
        _add_asking(server, effects)
    server.run("streamable-http", port=port, json_response=True, stateless_http=True)


def _add_asking(server: Any, effects: Effects) -> None:
    """Add a tool that asks a person for the account before it acts."""
    from mcp.server.mcpserver import Context, Elicit, Resolve
    from pydantic import BaseModel, Field, create_model

    account: type[BaseModel] = create_model("Account", account=(str, Field(min_length=4)))

    async def ask_account(amount: int) -> Any:
        return Elicit(f"From which account are {amount} sent?", account)

    async def send_once(ctx: Context, amount: int, given: Any) -> str:
        """Send an amount from an account that a person names."""
        done = await effects.act("send_once", str(dict(ctx.request_context.meta or {}).get(KEY, "-")))
        return f"{done}: {amount} from {given.account}"

    ask_account.__annotations__["return"] = Elicit[account]
    send_once.__annotations__["given"] = Annotated[account, Resolve(ask_account)]
    server.tool(structured_output=False)(send_once)


def main() -> None:
    """Read the command line and serve."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("--port", type=int, required=True)
    arguments.add_argument("--file", type=Path, required=True)
    arguments.add_argument("--delay-ms", type=int, default=200)
    arguments.add_argument("--described-as", default="")
    arguments.add_argument("--asking", action="store_true")
    options = arguments.parse_args()
    serve(
        options.file,
        port=options.port,
        delay_ms=options.delay_ms,
        described_as=options.described_as,
        asking=options.asking,
    )


if __name__ == "__main__":
    main()
