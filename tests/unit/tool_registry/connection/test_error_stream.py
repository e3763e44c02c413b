"""What a program writes to its error stream while it is tried is kept in part, in memory."""

from __future__ import annotations

import asyncio

from wayline.tool_registry.connection import try_connection
from wayline.tool_registry.connection.try_connection import ERRORS_READ_BYTES


async def test_an_endless_error_stream_leaves_its_end():
    with try_connection.error_stream() as errors:
        program = await asyncio.create_subprocess_exec(
            *("/bin/sh", "-c", "head -c 50000000 /dev/zero >&2; echo the last words >&2"), stderr=errors.stream
        )
        async with asyncio.timeout(60):
            await program.wait()

        end = errors.end()

    assert end.endswith("the last words")
    assert len(end) <= ERRORS_READ_BYTES
