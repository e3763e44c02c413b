"""What a tenant's program cannot reach: our environment and files, other tenants, the network; as root and not."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from wayline.contracts.mcp_servers import PutServer, ServerReport, ServerView, TryServer
from wayline.contracts.server_config import ServerConfig
from wayline.guarded_http import AddressPolicy
from wayline.simulator.website import Page, Website
from wayline.testkit import until
from wayline.testkit.walks import cases
from wayline.tool_registry.connection.program_streams import RESULT_BYTES
from wayline.tool_registry.connection.server_transport import Confinement, Transport
from wayline.tool_registry.programs import confined_program, jail_watch
from wayline.tool_registry.programs.jails import JailLimits, Jails, Network, user_of
from wayline.tool_registry.programs.program_policy import ProgramPolicy
from wayline.tool_registry.settings import Settings

from .hostile import is_alive

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux isolates programs")

PROGRAM = Path(__file__).with_name("spying_program.py")
SYSTEM_PYTHON = "/usr/bin/python3"
NOBODY = 65_534
CANARY = "canary-of-the-environment"
METADATA = ("169.254.169.254", 80)
LIMITS = JailLimits(memory_mb=256, processes_max=40, cpu_s=60, tmp_mb=16)
TOUCH = "import sys; open(sys.argv[1], 'w').write('mine')"
SESSIONS = """
import os, time
told, telling = os.pipe()
for _ in range(30):
    if os.fork() == 0:
        try:
            os.setsid()
            os.write(telling, b"+")
        except PermissionError:
            os.write(telling, b"-")
        time.sleep(120)
print("".join(os.read(told, 1).decode() for _ in range(30)))
"""
SESSIONS_IN_TURN = """
import os
for _ in range(30):
    if os.fork() == 0:
        os.setsid()
        os._exit(0)
    print(os.wait()[1])
"""
MEMORY = "import time; held = [bytearray(50_000_000) for _ in range(4)]; time.sleep(120)"

Started = Callable[[Callable[[], Coroutine[Any, Any, Any]]], Any]


def as_it_is(doing: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Return what a coroutine returns."""
    return asyncio.run(doing())


def as_nobody(doing: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Return what a coroutine returns in a process that has none of root's rights."""
    reading, writing = os.pipe()
    if (pid := os.fork()) == 0:
        with contextlib.suppress(BaseException):
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            os.write(writing, json.dumps(asyncio.run(doing())).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        said = file.read()
    os.waitpid(pid, 0)
    return json.loads(said)


@pytest.fixture(params=cases(["root", "ordinary user"]))
def started(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Started:
    """Return what runs a coroutine as root, or as a user without any right."""
    if request.param == "root":
        if os.geteuid() != 0:
            pytest.skip("this is an ordinary user")
        return as_it_is
    if os.geteuid() != 0:
        return as_it_is
    if not os.path.exists(SYSTEM_PYTHON):
        pytest.skip(f"no {SYSTEM_PYTHON}, which every user may run")
    # Ours may be in a home that others may not enter.
    monkeypatch.setattr(sys, "executable", SYSTEM_PYTHON)
    return as_nobody


@pytest.fixture
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a directory that every user may write to."""
    directory = Path("/var/tmp") / f"wayline-test-{os.getpid()}-{os.urandom(4).hex()}"
    directory.mkdir()
    directory.chmod(0o777)
    yield directory
    shutil.rmtree(directory)


def python() -> str:
    return os.path.realpath(sys.executable)


async def look(jails: Jails, tenant: str = "acme", limits: JailLimits = LIMITS, **sought: Any) -> dict[str, Any]:
    """Return what the spying program finds in a jail of a tenant."""
    wanted = {"words": [CANARY], "files": [], "places": [], "pids": [], **sought}
    async with jails.jail(tenant, python(), limits, named=[str(PROGRAM)]) as jail:
        argv = [*jail.prefix, python(), str(PROGRAM), json.dumps(wanted), "once"]
        return json.loads(await asyncio.to_thread(output_of, argv, jail.env))


def output_of(argv: list[str], env: dict[str, str]) -> bytes:
    done = subprocess.run(argv, env={**env, "OWN": "variable"}, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


@pytest.fixture
def other() -> Iterator[subprocess.Popen[bytes]]:
    """Run a process that has a secret in its environment, as the registry has at its start."""
    process = subprocess.Popen(["/bin/sleep", "300"], env={"SECRET": CANARY})
    yield process
    process.kill()
    process.wait()


def test_a_program_sees_no_other_process_and_no_environment(started: Started, place: Path, other):
    found = started(lambda: look(Jails(place / "programs"), pids=[other.pid, os.getpid()]))

    assert found == {"environments": [], "files": [], "places": [], "killed": []}


def test_a_program_reads_no_credentials(started: Started, place: Path):
    data = place / "shown" / "data"
    data.mkdir(parents=True)
    (data / "nats.seed").write_text("seed")
    (place / "shown" / "code").write_text("code")
    (place / "private").write_text("of the operator")
    shown = str(place / "shown")
    sought = [
        str(data / "nats.seed"),
        str(data),
        f"{shown}/code",
        str(place / "private"),
        "/etc/shadow",
        "/home",
        "/var/lib",
    ]

    found = started(lambda: look(Jails(place / "programs", reads=[shown], hidden=[data]), files=sought))

    assert found["files"] == [f"{shown}/code"]


def test_a_program_sees_no_other_tenants_files(started: Started, place: Path):
    jails = Jails(place / "programs")

    async def walk() -> list[Any]:
        async with jails.jail("acme", python(), LIMITS) as acme:
            for where in ("/program/cache/download", "/program/home/file"):
                await asyncio.to_thread(output_of, [*acme.prefix, python(), "-c", TOUCH, where], acme.env)
            files = [str(acme.home), str(acme.home / "file"), str(jails.downloads_of("acme") / "download")]
            files += ["/program/cache/download", "/program/home/file"]
            kept = [str(one) for one in (acme.home / "file", jails.downloads_of("acme") / "download") if one.is_file()]
            return [kept, await look(jails, "other", files=files), await look(jails, "acme", files=files)]

    kept, others, own = started(walk)

    assert len(kept) == 2
    assert (others["files"], own["files"]) == ([], ["/program/cache/download"])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives programs users of their tenants")
def test_each_tenants_programs_have_a_user_of_their_own(place: Path):
    jails = Jails(place / "programs")

    async def user(tenant: str) -> int:
        async with jails.jail(tenant, python(), LIMITS) as jail:
            told = output_of([*jail.prefix, python(), "-c", "import os; print(os.getuid())"], jail.env)
        return int(told)

    seen = [as_it_is(lambda tenant=tenant: user(tenant)) for tenant in ("acme", "other")]

    assert seen == [user_of("acme"), user_of("other")]
    assert len({0, *seen}) == 3


def test_a_program_reaches_no_network(started: Started, place: Path):
    async def walk() -> dict[str, Any]:
        async with Website({"/": Page("the keyless gateway")}) as site:
            return await look(Jails(place / "programs"), places=[METADATA, ("127.0.0.1", site.port), ("1.1.1.1", 443)])

    assert started(walk)["places"] == []


FETCH = """
import json, sys, urllib.request
def status(url):
    try:
        return urllib.request.urlopen(url, timeout=20).status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError as error:
        return str(error)
print(json.dumps([status(url) for url in sys.argv[1:]]))
"""


def test_a_program_reaches_the_hosts_that_are_named_alone(started: Started, place: Path):
    async def walk() -> list[Any]:
        async with Website({"/": Page("open")}) as open_site, Website({"/": Page("closed")}) as closed_site:
            opened = f"127.0.0.1:{open_site.port}"
            both = AddressPolicy.of([opened, f"127.0.0.1:{closed_site.port}"])
            async with Jails(place / "programs").jail(
                "acme", python(), LIMITS, network=Network(both, (opened,))
            ) as jail:
                urls = [open_site.url("/"), closed_site.url("/"), "http://169.254.169.254/", open_site.url("/")]
                argv = [*jail.prefix, python(), "-c", FETCH, *urls]
                # Twice: a program that is started again has another network.
                return [json.loads(await asyncio.to_thread(output_of, argv, bare(jail.env))) for _ in range(2)]

    assert started(walk) == [[200, 403, 403, 200]] * 2


def bare(env: dict[str, str]) -> dict[str, str]:
    """Return variables by which everything goes to the proxy, an address of this machine too."""
    return {name: value for name, value in env.items() if name != "NO_PROXY"}


def test_a_program_cannot_fork_without_end(started: Started, place: Path):
    found = started(lambda: look(Jails(place / "programs"), fork=True))

    assert 1 <= found["forks"] < LIMITS.processes_max


async def said_by(code: str, place: Path) -> str:
    """Return what a program of these lines says in a jail."""
    async with Jails(place / "programs").jail("acme", python(), LIMITS) as jail:
        return (await asyncio.to_thread(output_of, [*jail.prefix, python(), "-c", code], jail.env)).decode()


def test_a_program_has_a_few_sessions_at_once(started: Started, place: Path):
    said = started(lambda: said_by(SESSIONS, place))

    # The program's own is one of them.
    assert said.count("+") == jail_watch.SESSIONS_MAX - 1
    assert said.count("-") == 30 - said.count("+")


def test_a_program_begins_sessions_one_after_the_other_without_end(started: Started, place: Path):
    assert started(lambda: said_by(SESSIONS_IN_TURN, place)).split() == ["0"] * 30


def test_a_program_whose_children_take_too_much_memory_ends(started: Started, place: Path):
    async def walk() -> int:
        limits = JailLimits(memory_mb=100, processes_max=40, cpu_s=60)
        async with Jails(place / "programs").jail("acme", python(), limits) as jail:
            argv = [*jail.prefix, python(), "-c", MEMORY]
            return (await asyncio.to_thread(subprocess.run, argv, env=jail.env, timeout=60, check=False)).returncode

    assert started(walk) == confined_program.TOO_MUCH_MEMORY


def test_a_program_has_no_right_of_roots(started: Started, place: Path):
    said = started(lambda: said_by("print(open('/proc/self/status').read())", place))
    status = dict(line.split(":\t", 1) for line in said.splitlines() if ":\t" in line)

    assert {status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {"0" * 16}
    assert (status["NoNewPrivs"], "0" in status["Uid"].split()) == ("1", False)


@pytest.mark.skipif(shutil.which("node") is None, reason="no `node` is installed")
def test_a_program_runs_where_new_files_are_closed_to_others(started: Started, place: Path):
    async def why_not() -> str | None:
        before = os.umask(0o077)
        try:
            return await Jails(place / "programs").why_not()
        finally:
            os.umask(before)

    assert started(why_not) is None


def test_a_program_of_nodes_runs_in_a_jail(started: Started, place: Path):
    async def walk() -> str:
        node = shutil.which("node") or ""
        async with Jails(place / "programs").jail("acme", node, LIMITS) as jail:
            code = "console.log(require('os').userInfo().username, process.cwd(), require('os').cpus().length > 0)"
            return (await asyncio.to_thread(output_of, [*jail.prefix, node, "-e", code], jail.env)).decode()

    assert started(walk).split() == ["program", "/program/home", "true"]


def test_a_machine_that_cannot_isolate_refuses_programs(place: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(confined_program, "__file__", "/nowhere/confined_program.py")
    policy = ProgramPolicy("acme", Jails(place / "programs"))
    server = ServerConfig(command=sys.executable, args=("-c", f"open({str(place / 'ran')!r}, 'w')"))
    confined = Confinement(AddressPolicy(), programs=policy)
    transport = Transport(server, connections_max=1, confined=confined, result_bytes=RESULT_BYTES)

    async def connect() -> str:
        try:
            async with transport.opened(), transport.target():
                return "connected"
        except Exception as error:
            return str(error)

    assert "cannot be isolated: " in (why := asyncio.run(connect()))
    assert "WAYLINE_TOOL_REGISTRY_PROGRAMS=unconfined" in why
    assert not (place / "ran").exists()


def spy(*, files: list[str], pids: list[int], places: list[tuple[str, int]], words: list[str]) -> ServerConfig:
    sought = {"files": files, "pids": pids, "places": places, "words": words}
    return ServerConfig(command=sys.executable, args=(str(PROGRAM), json.dumps(sought)), trusted=True)


ALLOWED: dict[str, Any] = {"programs": "isolated", "program_reads": [str(PROGRAM)], "commands": [sys.executable]}


async def test_a_saved_program_finds_nothing_of_its_registry(platform):
    process = await platform.process(**ALLOWED)
    files = [str(platform.tmp_path / "programs"), str(Path.home() / ".ssh"), str(Path.home() / ".cache")]
    host, _, port = platform.nats.url.removeprefix("nats://").rpartition(":")
    config = spy(
        files=files,
        pids=[process.pid],
        places=[(host, int(port))],
        words=[platform.dsn, platform.nats.seeds["tool_registry"]],
    )
    await platform.bus.ask(PutServer(tenant=platform.tenant, name="spy", config=config), ServerView)

    reply = await platform.call(platform.ask("spy__look"))

    assert (reply.status, reply.error) == ("success", None)
    assert json.loads(reply.content) == {"environments": [], "files": [], "places": [], "killed": []}


async def test_an_isolated_program_ends_with_its_registry(platform):
    process = await platform.forked(**ALLOWED)
    config = spy(files=[], pids=[], places=[], words=[])
    await platform.bus.ask(PutServer(tenant=platform.tenant, name="spy", config=config), ServerView)
    assert (await platform.call(platform.ask("spy__look"))).status == "success"
    started = [pid for pid in below(process.pid) if "spying_program" in command_of(pid)]

    process.kill()
    await process.ended()

    await until(lambda: not any(map(is_alive, started)), why="nothing of the program is left")
    assert len(started) >= 3


async def test_a_program_without_network_says_how_to_open_it(platform):
    await platform.registry(platform.effects.settings(), **ALLOWED)
    config = ServerConfig(command=sys.executable, args=("-c", "import sys; sys.exit(7)"))

    report = await platform.bus.ask(TryServer(tenant=platform.tenant, config=config), ServerReport, timeout_s=30)

    assert not report.ok
    assert "the program ended with status 7" in report.why
    assert "`hosts`" in report.why


def below(pid: int) -> list[int]:
    """Return all processes that a process has started, and those that they did."""
    stats = {}
    for one in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            stats[int(one.name)] = int((one / "stat").read_text().rpartition(")")[2].split()[1])
    found, to_visit = [], [pid]
    while to_visit:
        parent = to_visit.pop()
        children = [child for child, its in stats.items() if its == parent]
        found += children
        to_visit += children
    return found


def command_of(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text()
    return ""


def test_programs_are_isolated_unless_the_operator_says_otherwise():
    assert Settings().programs == "isolated"
