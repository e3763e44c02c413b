"""Lines of a program: whole messages pass, anything else is kept no further than its head, and reading waits."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from wayline.tool_registry.connection.program_lines import AHEAD_BYTES, HEAD_BYTES, Line, LineTooLong, ProgramLines

MESSAGE = b'{"jsonrpc":"2.0","id":1,"result":{}}'


class Pipe(asyncio.ReadTransport):
    """A pipe that only notes whether it is read."""

    def __init__(self) -> None:
        super().__init__()
        self.is_read = True

    def pause_reading(self) -> None:
        self.is_read = False

    def resume_reading(self) -> None:
        self.is_read = True


def lines_of(*pieces: bytes, **limits: int) -> tuple[ProgramLines, Pipe]:
    lines, pipe = ProgramLines(**{"kept_max": 100_000, "line_max": 10_000_000, **limits}), Pipe()
    lines.connection_made(pipe)
    for piece in pieces:
        lines.data_received(piece)
    return lines, pipe


async def all_of(lines: ProgramLines) -> list[Line]:
    lines.connection_lost(None)
    found: list[Line] = []
    while (line := await lines.next()) is not None:
        found.append(line)
    return found


@pytest.mark.parametrize("size", [1, 7, 36, 37, 1_000])
async def test_lines_are_the_same_however_they_are_cut_into_pieces(size: int):
    written = b"hello\n" + MESSAGE + b"\n\n" + MESSAGE + b"\nrest without an end"
    pieces = [written[at : at + size] for at in range(0, len(written), size)]

    found = await all_of(lines_of(*pieces)[0])

    assert [line.text for line in found] == [b"hello", MESSAGE, b"", MESSAGE, b"rest without an end"]
    assert not any(line.is_cut for line in found)


async def test_a_long_line_without_message_is_kept_as_its_head():
    lines, _ = lines_of(*[b"x" * 65_536] * 100, b"\n", MESSAGE + b"\n")

    long, message = await all_of(lines)

    assert (len(long.text), long.length, long.is_cut) == (HEAD_BYTES, 6_553_600, True)
    assert message == Line(MESSAGE, len(MESSAGE))


async def test_a_long_message_is_kept_up_to_its_limit():
    begun = b"a greeting " + MESSAGE[:-1]
    lines, _ = lines_of(begun, *[b" " * 65_536] * 10, b"}\n")

    (line,) = await all_of(lines)

    assert line.text.startswith(begun)
    assert (len(line.text), line.is_cut, line.length) == (100_000, True, len(begun) + 655_361)


async def test_a_line_without_end_is_an_end():
    lines, _ = lines_of(MESSAGE + b"\n", b"{" * 2_000, line_max=1_000)

    first = await lines.next()

    assert first == Line(MESSAGE, len(MESSAGE))
    with pytest.raises(LineTooLong):
        await lines.next()


async def test_a_program_waits_while_nobody_takes_its_lines():
    lines, pipe = lines_of(b"\n" * AHEAD_BYTES)

    was_read = pipe.is_read
    taken: list[Any] = [await lines.next() for _ in range(AHEAD_BYTES)]

    assert (was_read, pipe.is_read, len(taken)) == (False, True, AHEAD_BYTES)


async def test_output_that_nobody_needs_is_read_to_its_end():
    lines, pipe = lines_of(b"\n" * AHEAD_BYTES)

    drained = asyncio.create_task(lines.drain())
    await asyncio.sleep(0)
    lines.data_received(b"x" * 100_000)
    lines.connection_lost(None)
    await drained

    assert pipe.is_read
    assert await lines.next() is None
