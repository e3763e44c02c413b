"""The MCP server of `effects_server.py`, for the process that serves it."""

import asyncio
import json
import os
from pathlib import Path
from typing import Annotated, Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context, Elicit, Resolve
from mcp_types import CallToolResult, TextContent, ToolAnnotations
from pydantic import BaseModel, Field, create_model

from wayline.testkit.effects_server import COST, KEY, RECONCILE, begun_beside


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


def serve(path: str, port: int, delay_ms: int, described_as: str, asking: bool) -> None:
    """Serve the four tools, and the one that asks, until the process is ended."""
    file = Path(path)
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
        # A search of this costs something, which only its result says.
        charged = {COST: "0.02"} if query.startswith("charged") else {}
        return result(await effects.act("look_read", meta(ctx).get(KEY, "-")), **charged)

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
