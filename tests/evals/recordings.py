"""Recorded provider traffic: reads the set and answers with it on a loopback socket."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import orjson
from aiohttp import web

from . import shared

ATTEMPT_HEADER = "X-Wayline-Attempt"
PIECES_BYTES = (1, 5, 64, 1_000, 20_000)
"""How long the pieces are that a body arrives in."""
BODY_MAX_BYTES = 64 * 1024 * 1024
NOT_KEPT = frozenset({"content-length", "transfer-encoding", "content-encoding", "connection"})
"""Headers that described the recorded connection, not the answer."""


@dataclass(frozen=True, slots=True)
class Recording:
    """One exchange with a provider, as it went over the wire."""

    name: str
    family: str
    host: str
    method: str
    path: str
    request: Any
    status: int
    headers: dict[str, str]
    streamed: bool
    body: bytes

    @property
    def answer(self) -> Any:
        """The body of a reply that was not streamed."""
        return orjson.loads(self.body)

    @property
    def events(self) -> list[dict[str, Any]]:
        """The data of every event of a streamed reply, in order."""
        data = [line[5:].strip() for line in self.body.split(b"\n") if line.startswith(b"data:")]
        return [orjson.loads(each) for each in data if each != b"[DONE]"]


def recordings(family: str) -> list[Recording]:
    """Every exchange of one family, in the order of the set."""
    return [_recording(row, number) for number, row in enumerate(shared.rows("wire-recordings", f"{family}.jsonl.gz"))]


def anthropic_streams() -> list[Recording]:
    """The event streams that the Anthropic SDK is tested with."""
    folder = shared.needed("wire-anthropic-sse")
    files = sorted(path for path in folder.iterdir() if path.suffix in {".txt", ".sse"})
    headers = {"content-type": "text/event-stream; charset=utf-8"}
    return [
        Recording(path.name, "anthropic", "", "POST", "/v1/messages", {}, 200, headers, True, path.read_bytes())
        for path in files
    ]


def _recording(row: dict[str, Any], number: int) -> Recording:
    response = row["response"]
    streamed = row["stream"] and isinstance(response, str)
    # Some recordings leave it out.
    kind = "text/event-stream" if streamed else "application/json"
    return Recording(
        name=f"{row['family']}-{number}",
        family=row["family"],
        host=row["host"],
        method=row["method"],
        path=row["path"].split("?")[0],
        request=row["request"],
        status=row["status"],
        headers={"content-type": kind, **row["response_headers"]},
        streamed=streamed,
        body=response.encode() if isinstance(response, str) else orjson.dumps(response),
    )


def pieces(body: bytes, chance: random.Random) -> list[bytes]:
    """The body cut at random places, inside lines and inside characters too."""
    found, at = list[bytes](), 0
    while at < len(body):
        size = chance.choice(PIECES_BYTES)
        found.append(body[at : at + size])
        at += size
    return found


class Replay:
    """Answers each call with the recording that its attempt header names, and counts the calls."""

    def __init__(self, recorded: list[Recording], *, seed: int = 1) -> None:
        self._recorded = {each.name: each for each in recorded}
        self._chance = random.Random(seed)
        self.calls: dict[str, int] = {}
        self.url = ""

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        name = request.headers[ATTEMPT_HEADER]
        self.calls[name] = self.calls.get(name, 0) + 1
        recorded = self._recorded[name]
        headers = {key: value for key, value in recorded.headers.items() if key.lower() not in NOT_KEPT}
        response = web.StreamResponse(status=recorded.status, headers=headers)
        await response.prepare(request)
        for piece in pieces(recorded.body, self._chance):
            await response.write(piece)
        await response.write_eof()
        return response


@asynccontextmanager
async def replay(recorded: list[Recording], *, seed: int = 1):
    """A loopback server that answers with these recordings while the block runs."""
    server = Replay(recorded, seed=seed)
    app = web.Application(client_max_size=BODY_MAX_BYTES)
    app.router.add_route("*", "/{path:.*}", server._answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    server.url = f"http://{host}:{port}"
    try:
        yield server
    finally:
        await runner.cleanup()


def of(
    recorded: list[Recording], *, streamed: bool, status: int = 200, ends: tuple[str, ...] = ()
) -> Iterator[Recording]:
    """Those that were streamed or not, answered so, whose path ends with one of these."""
    return (
        each
        for each in recorded
        if each.streamed is streamed and each.status == status and (not ends or each.path.endswith(ends))
    )
