"""A program's standard streams as an MCP connection: lines have a limit, and its end leaves no process."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TextIO, TypeAlias

import anyio

from wayline.tool_registry.connection.program_lines import MESSAGE_BEGIN, Line, LineTooLong, ProgramLines
from wayline.tool_registry.programs import program_guard
from wayline.tool_registry.programs.start_program import StartedProgram, start_program

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.shared.message import SessionMessage

LINE_MAX_BYTES = 64 * 1024 * 1024
"""Of one message. A result that is too long is refused by its own limit, which is lower; this one is against lines that
never end."""
MESSAGE_BYTES: Final = 32 * 1024 * 1024
"""Of a message that is kept, where nobody says otherwise; one that is longer is read as far as that."""
RESULT_BYTES: Final = 8 * 1024 * 1024
"""Of the text of a result, where nobody says otherwise."""
NONSENSE_MAX: Final = 10_000
"""Lines in a row that are no message."""
FLUSH_S: Final = 0.5
"""How long what was sent last may take to be written."""
EXIT_S: Final = 1.5
"""How long a program may take to end by itself, once its input has ended, and again once it was told to."""
POLL_S: Final = 0.01
KILL_POLLS: Final = 100
"""How often it is looked whether all that a program has started is dead."""


TakeTurn: TypeAlias = Callable[[int], Awaitable[None]]


async def _no_turn(size: int) -> None:
    """Wait for nothing."""


@dataclass(frozen=True)
class ProgramLimits:
    """What a program may use; 0: there is no limit."""

    memory_mb: int = 0
    files_max: int = 0
    file_mb: int = 0


@dataclass
class _Program:
    """A program under its guard, which is the process that is started here."""

    guard: StartedProgram
    lines: ProgramLines
    ended: Callable[[str], None]
    written: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once all that was sent is written."""
    left: bool = False
    """Whether it is being ended from here."""


@asynccontextmanager
async def program_streams(
    argv: list[str],
    *,
    env: Mapping[str, str],
    cwd: str | None,
    errors_to: TextIO | None,
    ended: Callable[[str], None],
    limits: ProgramLimits | None = None,
    result_bytes: int = RESULT_BYTES,
    message_bytes: int = MESSAGE_BYTES,
    take_turn: TakeTurn = _no_turn,
) -> AsyncIterator[tuple[Any, Any]]:
    """Start a program and yield the streams of its messages. `ended` is told why they ended before their time.

    `take_turn` waits, before a line of so many bytes is read, where the program made too much work of late.

    In place of the library's own: that one reads a line without end into memory, copies all of a long one with each
    piece of it, and gives up a program that writes a byte that is not UTF-8.
    """
    lines = ProgramLines(kept_max=message_bytes, line_max=LINE_MAX_BYTES)
    guard = await start_program(
        _guarded(argv, limits or ProgramLimits()),
        output=lines,
        errors_to=errors_to,
        env={"PATH": os.defpath, **env},
        cwd=cwd,
    )
    program = _Program(guard, lines, ended)
    to_session, incoming = anyio.create_memory_object_stream[Any](0)
    outgoing, from_session = anyio.create_memory_object_stream[Any](0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_read, program, to_session, result_bytes, take_turn)
        tasks.start_soon(_write, program, from_session, to_session)
        try:
            yield incoming, outgoing
        finally:
            program.left = True
            incoming.close()
            outgoing.close()
            with anyio.CancelScope(shield=True):
                await _uncancelled(_end(program))
            tasks.cancel_scope.cancel()


def _guarded(argv: list[str], limits: ProgramLimits) -> list[str]:
    """Return the command line of the guard that starts a program."""
    most = (limits.memory_mb, limits.files_max, limits.file_mb)
    # Isolated: neither the environment nor the working directory decides what this Python loads.
    return [sys.executable, "-I", "-S", program_guard.__file__, *map(str, most), *argv]


async def _read(
    program: _Program, to_session: MemoryObjectSendStream[SessionMessage], result_bytes: int, take_turn: TakeTurn
) -> None:
    """Pass on each line that is a message, until the program, the session or our patience ends."""
    nonsense = 0
    with to_session:
        while nonsense < NONSENSE_MAX:
            try:
                line = await program.lines.next()
            except LineTooLong:
                program.ended(f"it wrote a line above {LINE_MAX_BYTES} bytes")
                break
            if line is None:
                return await _tell_end(program)
            await take_turn(len(line.text))
            message = await _message(line, result_bytes)
            if message is None:
                nonsense += 1
                continue
            nonsense = 0
            try:
                await to_session.send(message)
            except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                break
        else:
            program.ended(f"it wrote {NONSENSE_MAX} lines that are no MCP message")
    await program.lines.drain()


async def _tell_end(program: _Program) -> None:
    """Tell how a program ended by itself. Its guard ends a moment after its output."""
    if program.left:
        return
    how = "closed its output"
    if await _has_ended(program.guard):
        status = program.guard.returncode or 0
        how = f"ended with status {status}" if status >= 0 else f"was ended by {_name(-status)}"
    program.ended(f"the program {how}")


def _name(number: int) -> str:
    with suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"


async def _message(line: Line, result_bytes: int) -> SessionMessage | None:
    """Return the message of a line; None: it is something else, such as a program's greeting."""
    # Some write half a line of their own before it, and some batches, as one version of the protocol had them.
    begins = 0 if line.text.startswith((b"{", b"[{")) else line.text.find(MESSAGE_BEGIN, 1)
    if begins < 0:
        return None
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter

    from wayline.tool_registry.connection.readable_messages import readable

    why_cut = f"it has {line.length} bytes, which are too many" if line.is_cut else ""
    message = await readable(line.text[begins:].rstrip(), most=result_bytes, why_cut=why_cut)
    if message is None:
        return None
    with suppress(ValueError):
        return SessionMessage(jsonrpc_message_adapter.validate_json(message, by_name=False))
    return None


async def _write(
    program: _Program,
    from_session: MemoryObjectReceiveStream[SessionMessage],
    to_session: MemoryObjectSendStream[SessionMessage],
) -> None:
    """Write what the session sends; a pipe that breaks ends the session."""
    try:
        async for sent in from_session:
            message = sent.message.model_dump_json(by_alias=True, exclude_unset=True)
            await program.guard.input.write(message.encode() + b"\n")
    except OSError:
        await _tell_end(program)
        await to_session.aclose()
    finally:
        program.written.set()


async def _uncancelled(doing: Coroutine[Any, Any, None]) -> None:
    """Do something to its end, however often this task is cancelled meanwhile: or a program would be left."""
    task, cancelled = asyncio.create_task(doing), False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError


async def _end(program: _Program) -> None:
    """End a program and all that it started: by the end of its input, then by signals."""
    guard = program.guard
    try:
        with anyio.move_on_after(FLUSH_S):
            await program.written.wait()
        guard.input.close()
        if not await _has_ended(guard):
            # The guard lives on, and passes it on to a program that has a group of its own.
            _signal(guard, signal.SIGTERM)
            await _has_ended(guard)
        for _ in range(KILL_POLLS):
            if not _kill_below(guard):
                break
            await asyncio.sleep(POLL_S)
        _signal(guard, signal.SIGKILL)
        await _has_ended(guard)
    except asyncio.CancelledError:
        # By an event loop that ends: nobody will look after the program any more.
        for _ in range(KILL_POLLS):
            if not _kill_below(guard):
                break
        _signal(guard, signal.SIGKILL)
        raise
    finally:
        # Else a process that left the group, and holds the pipe, would keep it open here.
        guard.close()


async def _has_ended(guard: StartedProgram) -> bool:
    """Return whether the guard ends in time."""
    for _ in range(round(EXIT_S / POLL_S)):
        if guard.returncode is not None:
            return True
        await asyncio.sleep(POLL_S)
    return False


def _kill_below(guard: StartedProgram) -> bool:
    """Kill what a guard has not ended, because it runs or was killed; return whether any of it may still run."""
    has_ended_all = guard.returncode is not None and guard.returncode >= 0
    return not has_ended_all and program_guard.kill_below(guard.pid)


def _signal(guard: StartedProgram, what: signal.Signals) -> None:
    """Send a signal to the guard's group; only on Linux its program is not in it."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(guard.pid, what)
