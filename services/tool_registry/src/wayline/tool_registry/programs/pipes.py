"""The pipes to a program that has ended."""

from __future__ import annotations

from asyncio.subprocess import Process


def close_pipes(process: Process) -> None:
    """Close the pipes to a program, also where a process that it has left holds their other ends."""
    # asyncio keeps them open until their other ends are closed too.
    transport = getattr(process, "_transport", None)
    if transport is not None:
        transport.close()
