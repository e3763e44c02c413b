"""Read documents of strangers in processes that are started when one is to be read and ended when they are idle."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import dataclass
from typing import Any, ClassVar

from wayline.chassis.concurrency.tenant_turns import TenantTurns
from wayline.tool_registry.programs.pipes import close_pipes
from wayline.tool_registry.web.pages.reader_process import LENGTH_BYTES

READ_S = 15.0
"""One document, with the time that a new process takes to start."""
IDLE_S = 120.0
DOCUMENTS_MAX = 100
"""Of one process: a parser that keeps memory gives it back."""
ANSWER_MAX_BYTES = 16 * 1024 * 1024


class CannotRead(Exception):
    """A document brought no text; the sentence says why."""

    code: ClassVar[str] = "unreadable"


class NotReadInTime(CannotRead):
    """A document was not read before its deadline."""

    code = "timeout"


@dataclass(frozen=True, slots=True)
class ReadDocument:
    """The text of a document."""

    title: str
    text: str


@dataclass(eq=False, slots=True)
class _ReaderProcess:
    process: asyncio.subprocess.Process
    read: int = 0
    ending: asyncio.TimerHandle | None = None


class DocumentReader:
    """Reads a few documents at once, one of each tenant, each in a process that can be killed."""

    def __init__(self, *, readers_max: int = 2, read_s: float = READ_S) -> None:
        self._slots = TenantTurns(readers_max)
        self._idle: list[_ReaderProcess] = []
        self._read_s = read_s

    async def read(
        self, tenant: str, content: bytes, *, kind: str, charset: str = "", url: str = "", deadline: float | None = None
    ) -> ReadDocument:
        """Return the text of a document. Raises CannotRead, also at a deadline by the event loop's clock."""
        about = json.dumps({"kind": kind, "charset": charset, "url": url}).encode()
        reading = False
        try:
            async with asyncio.timeout_at(deadline), self._slots.turn(tenant):
                reading = True
                answer = await self._answer(about, content)
        except TimeoutError:
            why = "reading it took too long" if reading else "other documents were read first: try it again later"
            raise NotReadInTime(f"it was fetched, but not read in time: {why}") from None
        if "error" in answer:
            raise CannotRead(answer["error"])
        return ReadDocument(answer["title"], answer["text"])

    async def _answer(self, about: bytes, content: bytes) -> dict[str, Any]:
        reader = self._idle.pop() if self._idle else _ReaderProcess(await _start())
        if reader.ending is not None:
            reader.ending.cancel()
        try:
            async with asyncio.timeout(self._read_s):
                answer = await _exchange(reader.process, about, content)
        except TimeoutError:
            await _end(reader)
            raise CannotRead(f"reading it took longer than {self._read_s:g} s") from None
        except (OSError, ValueError, asyncio.IncompleteReadError):
            await _end(reader)
            raise CannotRead("it cannot be read: the program that reads documents ended over it") from None
        except BaseException:
            await _end(reader)
            raise
        await self._keep(reader)
        return answer

    async def close(self) -> None:
        """End all processes that wait for a document."""
        while self._idle:
            await _end(self._idle.pop())

    async def _keep(self, reader: _ReaderProcess) -> None:
        reader.read += 1
        if reader.read >= DOCUMENTS_MAX:
            await _end(reader)
            return
        self._idle.append(reader)
        reader.ending = asyncio.get_running_loop().call_later(IDLE_S, self._end_idle, reader)

    def _end_idle(self, reader: _ReaderProcess) -> None:
        if reader in self._idle:
            self._idle.remove(reader)
            reader.process.kill()


async def _start() -> asyncio.subprocess.Process:
    # Isolated and without our environment: what a document makes of it sees no secret.
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        "-m",
        "wayline.tool_registry.web.pages.reader_process",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={"LANG": "C.UTF-8"},
        cwd="/",
        start_new_session=True,
        limit=ANSWER_MAX_BYTES,
    )


async def _exchange(process: asyncio.subprocess.Process, *frames: bytes) -> dict[str, Any]:
    assert process.stdin is not None and process.stdout is not None
    for frame in frames:
        process.stdin.write(len(frame).to_bytes(LENGTH_BYTES, "big") + frame)
    await process.stdin.drain()
    size = int.from_bytes(await process.stdout.readexactly(LENGTH_BYTES), "big")
    if size > ANSWER_MAX_BYTES:
        raise ValueError(size)
    return json.loads(await process.stdout.readexactly(size))


async def _end(reader: _ReaderProcess) -> None:
    if reader.ending is not None:
        reader.ending.cancel()
    if reader.process.returncode is None:
        reader.process.kill()
    await reader.process.wait()
    close_pipes(reader.process)
