"""A program's end is noticed on each event loop that the registry may run on, and nothing that it started is left."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import anyio
import pytest
import uvloop

from wayline.contracts.server_config import ProgramLimits, ServerConfig
from wayline.guarded_http import AddressPolicy
from wayline.testkit import until
from wayline.tool_registry.connection import program_streams
from wayline.tool_registry.connection.program_streams import RESULT_BYTES
from wayline.tool_registry.connection.server_transport import Confinement, Transport
from wayline.tool_registry.programs.jails import Jails
from wayline.tool_registry.programs.program_policy import ProgramPolicy
from wayline.tool_registry.programs.start_program import start_program
from wayline.tool_registry.web.pages.document_reader import CannotRead, DocumentReader

from .hostile import is_alive

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="programs are guarded on POSIX alone")
linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists what a program has started")

Run: TypeAlias = Callable[[Coroutine[Any, Any, None]], None]
WITHIN_S = 20.0
MOST = ProgramLimits(memory_mb=2_048, files_max=256, file_mb=16)
DOWNLOADS = Path(tempfile.gettempdir(), f"wayline-test-ends-{os.getpid()}")
UNCONFINED = ProgramPolicy("t1", Jails(DOWNLOADS), mode="unconfined", most=MOST)
LIMITED = Confinement(AddressPolicy(), programs=UNCONFINED)
NOTED = "import os, sys, subprocess, time; print(os.getpid(), file=open(sys.argv[1], 'a'), flush=True); "
CHILD = "import os, sys, time; print(os.getpid(), file=open(sys.argv[1], 'a'), flush=True); time.sleep(120)"
START_CHILD = f"subprocess.Popen([sys.executable, '-c', {CHILD!r}, sys.argv[1]]); "
START_DETACHED_CHILD = START_CHILD.replace("])", "], start_new_session=True)")
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
WAIT = "sys.stdin.read()"
SLEEP = "time.sleep(120)"


@pytest.fixture(autouse=True, scope="module")
def no_downloads_are_left() -> Iterator[None]:
    yield
    shutil.rmtree(DOWNLOADS, ignore_errors=True)


@pytest.fixture(params=[asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    """Return what runs a coroutine on one kind of event loop."""
    return request.param


@asynccontextmanager
async def started(code: str, *args: str, confined: Confinement | None = LIMITED) -> AsyncIterator[tuple[Any, ...]]:
    """Start a program of Python, and yield the messages that it sends and its transport."""
    server = ServerConfig(command=sys.executable, args=("-c", code, *args))
    transport = Transport(server, connections_max=1, confined=confined, result_bytes=RESULT_BYTES)
    async with asyncio.timeout(WITHIN_S), transport.opened(), transport.target() as (incoming, _):
        yield incoming, transport


async def noted(file: Path, count: int) -> list[int]:
    """Wait until as many processes have written their ids to a file, and return them."""
    await until(lambda: len(ids_in(file)) == count, why=f"{count} processes run")
    return ids_in(file)


async def gone(*pids: int) -> None:
    await until(lambda: not any(map(is_alive, pids)), why="no process is left")


def ids_in(file: Path) -> list[int]:
    return [int(line) for line in file.read_text().split()] if file.exists() else []


def files_of(pid: int) -> set[str]:
    return {one.name for one in Path(f"/proc/{pid}/fd").iterdir()}


def streams_of(pid: int) -> set[str]:
    return {stream(pid, file) for file in files_of(pid)}


def stream(pid: int, file: int | str) -> str:
    return os.readlink(f"/proc/{pid}/fd/{file}")


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.mark.parametrize("confined", [LIMITED, None], ids=["tenant", "installation"])
def test_a_program_that_exits_ends_its_connection(run: Run, confined: Confinement | None):
    async def main() -> None:
        async with started("import sys; sys.exit(3)", confined=confined) as (incoming, transport):
            with pytest.raises(anyio.EndOfStream):
                await incoming.receive()
            assert transport.ended == "the program ended with status 3"

    run(main())


def test_a_killed_program_ends_its_connection(run: Run, tmp_path: Path):
    async def main() -> None:
        async with started(NOTED + WAIT, str(tmp_path / "pids")) as (incoming, transport):
            (pid,) = await noted(tmp_path / "pids", 1)
            os.kill(pid, signal.SIGKILL)
            with pytest.raises(anyio.EndOfStream):
                await incoming.receive()
            assert transport.ended == "the program was ended by SIGKILL"

    run(main())


def test_leaving_a_program_is_no_end_of_its_own(run: Run, tmp_path: Path):
    async def main() -> None:
        async with started(NOTED + WAIT, str(tmp_path / "pids")) as (_, transport):
            await noted(tmp_path / "pids", 1)
        assert transport.ended == ""

    run(main())


@contextmanager
def inheritable_file() -> Iterator[None]:
    """Hold a file open that each program would be given which is not kept from it."""
    ends = os.pipe()
    try:
        os.set_inheritable(ends[0], True)
        yield
    finally:
        for end in ends:
            os.close(end)


@linux
def test_a_program_is_given_its_three_streams_alone(run: Run, tmp_path: Path):
    async def main() -> None:
        with inheritable_file():
            async with started(NOTED + WAIT, str(tmp_path / "pids")):
                (pid,) = await noted(tmp_path / "pids", 1)
                assert files_of(pid) == {"0", "1", "2"}

    run(main())


@linux
def test_a_guard_holds_no_stream_of_its_program_but_the_input(run: Run, tmp_path: Path):
    async def main() -> None:
        with inheritable_file():
            async with started(NOTED + WAIT, str(tmp_path / "pids")):
                (pid,) = await noted(tmp_path / "pids", 1)
                guard = parent_of(pid)
                await until(lambda: stream(guard, 2) == os.devnull, why="the guard has let go of the program's streams")
                assert (streams_of(guard) & streams_of(pid)) - {os.devnull} == {stream(pid, 0)}

    run(main())


@linux
def test_a_document_reader_is_given_its_three_streams_alone(run: Run):
    async def main() -> None:
        reader = DocumentReader()
        with inheritable_file():
            await reader.read("t1", b"words", kind="text")
            assert files_of(reader._processes._idle[0].process.pid) == {"0", "1", "2"}
        await reader.close()

    run(main())


@linux
def test_a_detached_child_ends_with_its_program(run: Run, tmp_path: Path):
    async def main() -> None:
        file = tmp_path / "pids"
        # It also holds the program's output open.
        async with started(NOTED + START_DETACHED_CHILD + WAIT, str(file)) as (incoming, _):
            program, child = await noted(file, 2)
            os.kill(program, signal.SIGKILL)
            with pytest.raises(anyio.EndOfStream):
                await incoming.receive()
            await gone(program, child)

    run(main())


@linux
@pytest.mark.parametrize("rest", [WAIT, SLEEP], ids=["polite", "deaf"])
def test_a_detached_child_ends_when_its_program_is_left(run: Run, tmp_path: Path, rest: str):
    async def main() -> None:
        file = tmp_path / "pids"
        async with started(DEAF + NOTED + START_DETACHED_CHILD + rest, str(file)):
            pids = await noted(file, 2)
        await gone(*pids)

    run(main())


@linux
def test_a_killed_guard_leaves_no_process_of_its_session(run: Run, tmp_path: Path):
    async def main() -> None:
        file = tmp_path / "pids"
        async with started(NOTED + START_CHILD + WAIT, str(file)):
            pids = await noted(file, 2)
            os.kill(parent_of(pids[0]), signal.SIGKILL)
            await until(lambda: not is_alive(pids[0]), why="the program ends with its guard")
        await gone(*pids)

    run(main())


def test_an_event_loop_that_ends_leaves_no_program(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    left: list[Any] = []

    async def begin(*argv: Any, **options: Any) -> Any:
        left.append(await start_program(*argv, **options))
        return left[-1]

    monkeypatch.setattr(program_streams, "start_program", begin)
    file = tmp_path / "pids"

    async def hold() -> None:
        async with started(DEAF + NOTED + START_DETACHED_CHILD + SLEEP, str(file)):
            await asyncio.Event().wait()

    async def main() -> None:
        held = asyncio.create_task(hold())
        await noted(file, 2)
        held.cancel()
        # What ends the program has begun when the loop ends.
        await until(lambda: left[0].input.is_closing, why="the program's input is closed")

    run(main())

    asyncio.run(gone(left[0].pid, *ids_in(file)))
    assert left[0].returncode is not None


def test_a_program_that_cannot_be_run_says_why(run: Run, tmp_path: Path):
    broken = tmp_path / "broken"
    broken.write_text("#!/nowhere/python\n")
    broken.chmod(0o700)

    async def main() -> None:
        errors = (tmp_path / "errors").open("w")
        server = ServerConfig(command=str(broken))
        transport = Transport(server, connections_max=1, confined=LIMITED, result_bytes=RESULT_BYTES, errors_to=errors)
        async with asyncio.timeout(WITHIN_S), transport.opened(), transport.target() as (incoming, _):
            with pytest.raises(anyio.EndOfStream):
                await incoming.receive()
        errors.close()
        assert transport.ended == "the program ended with status 127"

    run(main())
    assert (tmp_path / "errors").read_text() == f"{broken} cannot be run: No such file or directory\n"


@pytest.mark.parametrize("is_closed", [False, True], ids=["just now", "pipe closed"])
def test_a_document_reader_that_is_killed_is_noticed(run: Run, is_closed: bool):
    async def main() -> None:
        reader = DocumentReader()
        await reader.read("t1", b"words", kind="text")
        process = reader._processes._idle[0].process
        os.kill(process.pid, signal.SIGKILL)
        if is_closed:
            assert process.stdin is not None
            await process.wait()
            await until(process.stdin.is_closing, why="its end is seen")
        with pytest.raises(CannotRead, match="ended over it"):
            await reader.read("t1", b"words", kind="text")
        await reader.close()

    run(main())
