"""A program's standard streams as an MCP connection: lines have a limit, and its end leaves no process."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, TextIO

import anyio

from wayline.tool_registry.processes.pipes import close_pipes

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.shared.message import SessionMessage

LINE_MAX_BYTES = 64 * 1024 * 1024
"""Of one message. A result that is too long is refused by its own limit, which is lower; this one is against lines that
never end."""
NONSENSE_MAX: Final = 10_000
"""Lines in a row that are no message."""
DRAIN_BYTES: Final = 64 * 1024
FLUSH_S: Final = 0.5
"""How long what was sent last may take to be written."""
EXIT_S: Final = 1.5
"""How long a program may take to end by itself, once its input has ended, and again once it was told to."""
POLL_S: Final = 0.01


@asynccontextmanager
async def program_streams(
    argv: list[str],
    *,
    env: Mapping[str, str],
    cwd: str | None,
    errors_to: TextIO | None,
    ended: Callable[[str], None],
) -> AsyncIterator[tuple[Any, Any]]:
    """Start a program and yield the streams of its messages. `ended` is told why they ended before their time.

    In place of the library's own: that one reads a line without end into memory, copies all of a long one with each
    piece of it, and gives up a program that writes a byte that is not UTF-8.
    """
    from mcp.client.stdio import get_default_environment

    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=PIPE,
        stdout=PIPE,
        stderr=errors_to,
        env={**get_default_environment(), **env},
        cwd=cwd,
        start_new_session=True,
        limit=LINE_MAX_BYTES,
    )
    to_session, incoming = anyio.create_memory_object_stream[Any](0)
    outgoing, from_session = anyio.create_memory_object_stream[Any](0)
    written = asyncio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_read, process, to_session, ended)
        tasks.start_soon(_write, process, from_session, to_session, written)
        try:
            yield incoming, outgoing
        finally:
            incoming.close()
            outgoing.close()
            with anyio.CancelScope(shield=True):
                await _uncancelled(_end(process, written))
            tasks.cancel_scope.cancel()


async def _read(
    process: Process, to_session: MemoryObjectSendStream[SessionMessage], ended: Callable[[str], None]
) -> None:
    """Pass on each line that is a message, until the program, the session or our patience ends."""
    stdout = process.stdout
    assert stdout is not None
    nonsense = 0
    with to_session:
        while nonsense < NONSENSE_MAX:
            try:
                line = await stdout.readuntil()
            except asyncio.IncompleteReadError:
                return
            except asyncio.LimitOverrunError:
                ended(f"it wrote a line above {LINE_MAX_BYTES} bytes")
                break
            message = _message(line)
            if message is None:
                nonsense += 1
                continue
            nonsense = 0
            try:
                await to_session.send(message)
            except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                break
        else:
            ended(f"it wrote {NONSENSE_MAX} lines that are no MCP message")
    # A program that cannot write does not see that its input has ended.
    while await stdout.read(DRAIN_BYTES):
        pass


def _message(line: bytes) -> SessionMessage | None:
    """Return the message of a line; None: it is something else, such as a program's greeting."""
    if not line.startswith(b"{"):
        return None
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter

    with suppress(ValueError):
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    return None


async def _write(
    process: Process,
    from_session: MemoryObjectReceiveStream[SessionMessage],
    to_session: MemoryObjectSendStream[SessionMessage],
    written: asyncio.Event,
) -> None:
    """Write what the session sends; a pipe that breaks ends the session."""
    stdin = process.stdin
    assert stdin is not None
    try:
        async for sent in from_session:
            stdin.write(sent.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
            await stdin.drain()
    except OSError:
        await to_session.aclose()
    finally:
        written.set()


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


async def _end(process: Process, written: asyncio.Event) -> None:
    """End a program and all that it started: by the end of its input, then by signals."""
    try:
        with anyio.move_on_after(FLUSH_S):
            await written.wait()
        assert process.stdin is not None
        process.stdin.close()
        if not await _has_ended(process):
            _signal(process, signal.SIGTERM)
            await _has_ended(process)
        # Also where it has ended: what it started may not have.
        _signal(process, signal.SIGKILL)
        await _has_ended(process)
    except asyncio.CancelledError:
        # By an event loop that ends: nobody will look after the program any more.
        _signal(process, signal.SIGKILL)
        raise
    finally:
        # Else a process that left the group, and holds the pipe, would keep it open here.
        close_pipes(process)


async def _has_ended(process: Process) -> bool:
    """Return whether the program ends in time. Not `wait`: that waits for its pipes too, which its children hold."""
    for _ in range(round(EXIT_S / POLL_S)):
        if process.returncode is not None:
            return True
        await asyncio.sleep(POLL_S)
    return False


def _signal(process: Process, what: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, what)
