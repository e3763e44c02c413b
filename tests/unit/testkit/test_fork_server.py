"""Processes that a fork server starts are processes like any other."""

import asyncio
import os
import signal
import sys
from pathlib import Path
from textwrap import dedent

from wayline.embedded.process import Child, is_alive
from wayline.testkit import until
from wayline.testkit.fork_server import fork

TESTER = """
    import sys
    from pathlib import Path
    from wayline.testkit.fork_server import fork
    print(fork("time:sleep", 600, log=Path(sys.argv[1])).pid, flush=True)
"""


def program(tmp_path: Path, text: str) -> Child:
    """Fork a program whose text is in a file."""
    file = tmp_path / "program.py"
    file.write_text(dedent(text))
    return fork("runpy:run_path", str(file), log=tmp_path / "log", cwd=tmp_path, env={"NAME": "a name"})


async def status(child: Child) -> int | None:
    await until(lambda: child.exited, why="the process ends")
    return child.process.returncode


async def test_a_forked_process_has_its_own_environment_directory_and_log(tmp_path):
    child = program(tmp_path, "import os; print(os.getpid(), dict(os.environ), os.getcwd())")

    assert await status(child) == 0
    assert (tmp_path / "log").read_text() == f"{child.pid} {{'NAME': 'a name'}} {tmp_path}\n"


async def test_a_forked_process_reports_how_it_exited(tmp_path):
    assert await status(program(tmp_path, "raise SystemExit(3)")) == 3
    assert await status(program(tmp_path, "import os; os.kill(os.getpid(), 9)")) == -signal.SIGKILL


async def test_a_forked_process_that_fails_says_why(tmp_path):
    assert await status(program(tmp_path, "raise ValueError('too few')")) == 1
    assert "ValueError: too few" in (tmp_path / "log").read_text()
    assert await status(program(tmp_path, "raise SystemExit('no port is free')")) == 1
    assert "no port is free" in (tmp_path / "log").read_text()


async def test_forked_processes_hear_signals_as_others_do(tmp_path):
    child = fork("time:sleep", 600, log=tmp_path / "log")
    await until(lambda: os.getsid(child.pid) == child.pid, why="it has a session of its own")
    child.process.send_signal(signal.SIGTERM)

    assert await status(child) == -signal.SIGTERM


async def test_a_forked_process_dies_with_the_one_that_asked_for_it(tmp_path):
    words = [sys.executable, "-c", dedent(TESTER), str(tmp_path / "log")]
    tester = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
    assert tester.stdout is not None
    forked = int(await tester.stdout.readline())
    assert is_alive(forked)
    tester.kill()
    await tester.wait()

    await until(lambda: not is_alive(forked), why="the forked process is gone")
