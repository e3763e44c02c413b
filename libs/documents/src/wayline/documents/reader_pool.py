"""Read documents of strangers in processes that are started when one is to be read and ended when they are idle."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import asdict, dataclass
from typing import Any

from wayline.documents.errors import Unreadable
from wayline.documents.readable import HELLO, LENGTH_BYTES, MEGABYTE, ReadableDocument, ReadLimits, TextPage

MEMORY_MAX_BYTES = 1024 * MEGABYTE
START_S = 30.0
"""What a new process may take until it reads, on a machine with much to do."""
GRACE_S = 1.0
"""Beyond a document's own time: a reader that ends by itself can say where it was."""
IDLE_S = 120.0
PIECE_BYTES = 256 * 1024
"""Of a document as it is handed to a process."""
DOCUMENTS_MAX = 100
"""Of one process: a parser that keeps memory gives it back."""
ANSWER_BYTES_OF_A_CHAR = 6
"""At most, in JSON; with what stands around the text."""
ANSWER_MARGIN_BYTES = MEGABYTE


@dataclass(eq=False, slots=True)
class _ReaderProcess:
    process: asyncio.subprocess.Process
    read: int = 0
    ending: asyncio.TimerHandle | None = None


class ReaderPool:
    """Reads each document in a process that can be killed; as many at once as are asked for, which callers bound."""

    def __init__(self, *, memory_max_bytes: int = MEMORY_MAX_BYTES, start_s: float = START_S) -> None:
        self._memory_max_bytes = memory_max_bytes
        self._start_s = start_s
        self._idle: list[_ReaderProcess] = []

    async def read(
        self,
        content: bytes,
        *,
        kind: str,
        limits: ReadLimits,
        charset: str = "",
        url: str = "",
        links: bool = True,
    ) -> ReadableDocument:
        """Return the text of a document. Raises Unreadable, in bounded time; its process ends where it is cancelled."""
        about = {"kind": kind, "charset": charset, "url": url, "links": links, "limits": asdict(limits)}
        answer = await self._answer(json.dumps(about).encode(), content, limits)
        if "error" in answer:
            raise Unreadable(answer["error"])
        pages = [TextPage(**page) for page in answer.pop("pages")]
        return ReadableDocument(pages=pages, **answer)

    async def _answer(self, about: bytes, content: bytes, limits: ReadLimits) -> dict[str, Any]:
        reader = self._idle.pop() if self._idle else await self._start()
        if reader.ending is not None:
            reader.ending.cancel()
        try:
            async with asyncio.timeout(limits.document_s + GRACE_S):
                answer = await _exchange(reader.process, about, content, _answer_max_bytes(limits))
        except TimeoutError:
            await _end(reader)
            raise Unreadable(f"Reading the document took longer than {limits.document_s:g} s: split it.") from None
        except (OSError, ValueError, asyncio.IncompleteReadError):
            await _end(reader)
            raise Unreadable(
                "The document cannot be read: the program that reads documents ended over it. Open it where it was "
                "made, and save it anew."
            ) from None
        except BaseException:
            await _end(reader)
            raise
        if answer.pop("ends", False):
            await _end(reader)
        else:
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

    async def _start(self) -> _ReaderProcess:
        # Isolated and without our environment: what a document makes of it sees no secret.
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-B", "-m", "wayline.documents.reader_process", str(self._memory_max_bytes)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            # Each thread of a numeric library reserves memory, of which there is little.
            env={"LANG": "C.UTF-8", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
            cwd="/",
            start_new_session=True,
        )
        reader = _ReaderProcess(process)
        assert process.stdout is not None
        try:
            async with asyncio.timeout(self._start_s):
                await process.stdout.readexactly(len(HELLO))
        except BaseException:
            await _end(reader)
            raise
        return reader


def _answer_max_bytes(limits: ReadLimits) -> int:
    return limits.text_max_chars * ANSWER_BYTES_OF_A_CHAR + ANSWER_MARGIN_BYTES


async def _exchange(
    process: asyncio.subprocess.Process, about: bytes, content: bytes, answer_max_bytes: int
) -> dict[str, Any]:
    assert process.stdin is not None and process.stdout is not None
    for frame in (about, content):
        _write(process.stdin, len(frame).to_bytes(LENGTH_BYTES, "big"))
        # In one piece it would be copied, and once more into the buffer of the pipe.
        for at in range(0, len(frame), PIECE_BYTES):
            _write(process.stdin, frame[at : at + PIECE_BYTES])
            await process.stdin.drain()
    size = int.from_bytes(await process.stdout.readexactly(LENGTH_BYTES), "big")
    if size > answer_max_bytes:
        raise ValueError(size)
    answer = await process.stdout.readexactly(size)
    return await asyncio.to_thread(json.loads, answer)


def _write(pipe: asyncio.StreamWriter, data: bytes) -> None:
    """Write to a process. Raises BrokenPipeError where it has ended."""
    # What is written to a closed pipe is a RuntimeError on uvloop, and nothing at all on asyncio's own loop.
    if pipe.is_closing():
        raise BrokenPipeError
    pipe.write(data)


async def _end(reader: _ReaderProcess) -> None:
    if reader.ending is not None:
        reader.ending.cancel()
    if reader.process.returncode is None:
        reader.process.kill()
    await reader.process.wait()
    # asyncio keeps the pipes open until their other ends are closed too.
    transport = getattr(reader.process, "_transport", None)
    if transport is not None:
        transport.close()
