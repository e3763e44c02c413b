"""What a service that runs by itself writes of errors, its own and those of libraries."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

from wayline.testkit import until
from wayline.testkit.fork_server import fork

PROGRAM = """
    import logging
    from wayline.chassis.logs import plain

    plain()
    # Every registry makes one, and it sets up logs where nobody has.
    from mcp.server import MCPServer
    MCPServer("any", log_level="WARNING")
    try:
        1 / 0
    except ZeroDivisionError:
        logging.getLogger("asyncpg").warning("a connection failed", exc_info=True)
"""


async def test_a_library_writes_tracebacks_as_python_prints_them(tmp_path: Path):
    program, log = tmp_path / "program.py", tmp_path / "log"
    program.write_text(dedent(PROGRAM))

    child = fork("runpy:run_path", str(program), log=log)
    await until(lambda: child.exited, why="the program ends")

    first, *traceback = log.read_text().splitlines()
    assert first.endswith("[WARNING] a connection failed")
    assert (traceback[0], traceback[-1]) == (
        "Traceback (most recent call last):",
        "ZeroDivisionError: division by zero",
    )
