"""Start a program whose streams an event loop reads and writes, without a copy of this process."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TextIO, cast


class ProgramInput(asyncio.Protocol):
    """What a program is written, no faster than it reads."""

    def __init__(self) -> None:
        self._transport: asyncio.WriteTransport | None = None
        self._open = asyncio.Event()
        self._open.set()
        self._is_lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the pipe."""
        # uvloop's are of no class of asyncio's.
        self._transport = cast("asyncio.WriteTransport", transport)

    def pause_writing(self) -> None:
        """Let writers wait."""
        self._open.clear()

    def resume_writing(self) -> None:
        """Let writers go on."""
        self._open.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """Let writers find that nobody reads any more."""
        self._is_lost = True
        self._open.set()

    @property
    def is_closing(self) -> bool:
        """Return whether nothing more can be written."""
        return self._is_lost or self._transport is None or self._transport.is_closing()

    async def write(self, data: bytes) -> None:
        """Write, and wait while the program does not read. Raises BrokenPipeError."""
        if self._transport is None or self.is_closing:
            raise BrokenPipeError
        self._transport.write(data)
        await self._open.wait()
        if self._is_lost:
            raise BrokenPipeError

    def close(self) -> None:
        """End the program's input once all is written."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """End the program's input at once."""
        if self._transport is not None and not self._is_lost:
            self._transport.abort()


@dataclass(frozen=True, eq=False)
class StartedProgram:
    """A program that was started here."""

    process: subprocess.Popen[bytes]
    input: ProgramInput
    output: asyncio.ReadTransport

    @property
    def pid(self) -> int:
        """Return the program's process, which leads a group of its own."""
        return self.process.pid

    @property
    def returncode(self) -> int | None:
        """Return how it ended; None: it runs."""
        return self.process.poll()

    def close(self) -> None:
        """Close the pipes, also where a process that it has left holds their other ends."""
        self.input.abort()
        self.output.close()


async def start_program(
    argv: Sequence[str],
    *,
    output: asyncio.Protocol,
    errors_to: TextIO | None,
    env: Mapping[str, str],
    cwd: str | None,
) -> StartedProgram:
    """Start a program in a session of its own; `output` hears what it writes.

    Not by the event loop's own way: uvloop copies this whole process first, which stops the loop for ten milliseconds
    and more; `subprocess` borrows its memory until the program runs.
    """
    loop = asyncio.get_running_loop()
    # On the loop's thread: the guard ends with the thread that has started it.
    process = subprocess.Popen(  # noqa: ASYNC220  it takes a third of a millisecond
        argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors_to,
        env=env,
        cwd=cwd,
        start_new_session=True,
        bufsize=0,
    )
    try:
        _, written = await loop.connect_write_pipe(ProgramInput, process.stdin)
        read, _ = await loop.connect_read_pipe(lambda: output, process.stdout)
    except BaseException:
        process.kill()
        process.wait()
        raise
    return StartedProgram(process, written, read)
