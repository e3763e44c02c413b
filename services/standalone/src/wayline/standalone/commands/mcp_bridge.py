"""`wayline mcp bridge`: MCP over standard input and output, for clients that start their servers as programs."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any, Final

import typer

app = typer.Typer()

ACCEPT: Final = "application/json, text/event-stream"
LINE_MAX_BYTES: Final = 8 * 1024 * 1024
"""As much as a gateway takes of one request."""
CALL_MAX_S: Final = 900.0
"""Longer than a gateway has `run_agent` wait."""
LAST_ANSWERS_S: Final = 5.0
"""How long answers are waited for once the client has closed its end."""
RECONNECT_AFTER_S: Final = 2.0
INTERNAL_ERROR: Final = -32603
"""Of JSON-RPC."""

Write = Callable[[dict[str, Any]], None]


@app.command("bridge")
def bridge() -> None:
    """Serve MCP on standard input and output, and pass all on to the gateway's /mcp.

    For clients that start a program for each server: `{"command": "wayline", "args": ["mcp", "bridge"], "env":
    {"WAYLINE_URL": "…", "WAYLINE_API_KEY": "…"}}`.
    """
    from wayline.client import Address

    asyncio.run(Bridge(Address.from_environment(), _write_line).run(_read_lines()))


class Bridge:
    """Passes one client's messages on, and what the gateway says to them and of changes."""

    def __init__(self, address: Any, write: Write) -> None:
        import httpx2

        headers = {"Accept": ACCEPT, "Content-Type": "application/json"}
        if address.key:
            headers["Authorization"] = f"Bearer {address.key}"
        self._url = f"{address.url}/mcp"
        self._http = httpx2.AsyncClient(headers=headers, timeout=CALL_MAX_S, trust_env=False)
        self._write = write
        self._posts: set[asyncio.Task[None]] = set()
        self._changes: asyncio.Task[None] | None = None

    async def run(self, lines: AsyncIterator[bytes]) -> None:
        """Pass on what the client writes until it closes its end."""
        async with self._http:
            async for line in lines:
                if not line.strip():
                    continue
                if b'"initialize"' in line:
                    # Its answer names the session of all that follows.
                    await self._post(line)
                    continue
                post = asyncio.create_task(self._post(line))
                self._posts.add(post)
                post.add_done_callback(self._posts.discard)
            if self._posts:
                await asyncio.wait(self._posts, timeout=LAST_ANSWERS_S)
            for task in (*self._posts, *([self._changes] if self._changes else [])):
                task.cancel()

    async def _post(self, line: bytes) -> None:
        """Pass a line on, and what answers it: each request in it is answered, also where the gateway does not."""
        import httpx2

        unanswered, why = _request_ids(line), f"{self._url} ended its answer too early"
        try:
            async with self._http.stream("POST", self._url, content=line) as answer:
                if answer.status_code >= 400:
                    why = _reason(answer.status_code, await answer.aread())
                else:
                    async for message in _messages(answer):
                        self._tell(message)
                        unanswered = [one for one in unanswered if one not in _answered_ids(message)]
                    self._begin_session(answer)
        except httpx2.HTTPError as error:
            why = f"{self._url} does not answer: {error or type(error).__name__}"
        except ValueError:
            why = f"{self._url} answered with something that is no JSON"
        for request_id in unanswered:
            self._write({"jsonrpc": "2.0", "id": request_id, "error": {"code": INTERNAL_ERROR, "message": why}})

    def _begin_session(self, answer: Any) -> None:
        """Hear of the changes of a session, where an answer names one."""
        if session := answer.headers.get("mcp-session-id"):
            self._http.headers["Mcp-Session-Id"] = session
            if self._changes is not None:
                self._changes.cancel()
            self._changes = asyncio.create_task(self._hear_changes())

    def _tell(self, message: Any) -> None:
        if isinstance(message, dict) and isinstance(result := message.get("result"), dict):
            version = result.get("protocolVersion")
            if isinstance(version, str):
                self._http.headers["MCP-Protocol-Version"] = version
        self._write(message)

    async def _hear_changes(self) -> None:
        """Write what the gateway tells of changes, for as long as the client is there."""
        import httpx2

        while True:
            with suppress(httpx2.HTTPError, ValueError):
                async with self._http.stream("GET", self._url, timeout=None) as answer:
                    if answer.status_code >= 400:
                        return
                    async for message in _messages(answer):
                        self._tell(message)
            await asyncio.sleep(RECONNECT_AFTER_S)


async def _messages(answer: Any) -> AsyncIterator[Any]:
    """Yield each message of an answer as it comes. Raises ValueError for what is no JSON."""
    if not answer.headers.get("content-type", "").startswith("text/event-stream"):
        if body := await answer.aread():
            yield json.loads(body)
        return
    async for line in answer.aiter_lines():
        if line.startswith("data:") and (data := line[5:].strip()):
            yield json.loads(data)


def _request_ids(line: bytes) -> list[Any]:
    """Return the ids of the requests in a line; a notification has none."""
    try:
        said = json.loads(line)
    except ValueError:
        return []
    several = said if isinstance(said, list) else [said]
    return [one["id"] for one in several if isinstance(one, dict) and "id" in one and "method" in one]


def _answered_ids(message: Any) -> list[Any]:
    """Return the ids of the requests that a message answers."""
    several = message if isinstance(message, list) else [message]
    return [one.get("id") for one in several if isinstance(one, dict) and ("result" in one or "error" in one)]


def _reason(status: int, body: bytes) -> str:
    try:
        said = json.loads(body)
        return str(said.get("detail") or said["error"]["message"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return f"HTTP {status}"


async def _read_lines() -> AsyncIterator[bytes]:
    """Yield the lines of standard input; one that is too long ends them."""
    while line := await asyncio.to_thread(sys.stdin.buffer.readline, LINE_MAX_BYTES):
        yield line
        if not line.endswith(b"\n"):
            return


def _write_line(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message, separators=(",", ":")) + "\n")
    sys.stdout.flush()
