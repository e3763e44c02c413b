"""As root, Postgres runs under an account that is not, without any right of root, wherever checkout and data are."""

import os
import shutil
import tempfile
from pathlib import Path

import asyncpg
import pytest

from wayline.embedded import PostgresServer, ProgramsUnreadable, Unreachable, binaries, postgres, program_copy
from wayline.embedded.program_copy import Programs
from wayline.testkit.fixtures import copied_postgres

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root has to become somebody else")


@pytest.fixture
def closed_dir():
    """A directory that only root may enter, as root's home is."""
    with tempfile.TemporaryDirectory(prefix="wayline-closed-") as directory:
        yield Path(directory)


def install(site: Path) -> None:
    """Copy Postgres into another directory of packages."""
    installed = binaries.postgres_programs()
    for part in installed.parts:
        (site / part).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (installed.root / part).is_dir() else shutil.copy
        copy(installed.root / part, site / part)


def use(site: Path, monkeypatch: pytest.MonkeyPatch) -> Programs:
    """Have Postgres found below another directory of packages."""
    bin_dir = next(site.glob("*/*/bin"))
    monkeypatch.setattr(binaries, "postgres_bin", lambda: bin_dir)
    return binaries.postgres_programs()


@pytest.fixture(scope="module")
def closed_site():
    """Packages, Postgres among them, where only root can read them."""
    with tempfile.TemporaryDirectory(prefix="wayline-closed-") as directory:
        install(Path(directory))
        yield Path(directory)


@pytest.fixture
def closed_programs(closed_site: Path, monkeypatch: pytest.MonkeyPatch) -> Programs:
    """The programs installed where only root can read them."""
    return use(closed_site, monkeypatch)


@pytest.fixture
def open_dir():
    """A directory that everybody may enter, wherever the temporary files of this session are."""
    with tempfile.TemporaryDirectory(prefix="wayline-open-", dir="/tmp") as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)


@pytest.fixture
def place(open_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where copies are made, for this test alone."""
    monkeypatch.setattr(program_copy, "PLACES", (open_dir / "wayline",))
    return open_dir / "wayline"


def effective_ids_and_rights(pid: int) -> tuple[int, int]:
    status = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(status["Uid"].split()[1]), int(status["CapEff"], 16)


def open_to_all(directory: Path) -> None:
    """Let everybody read what is there, also where the installed files are closed."""
    for path in directory.rglob("*"):
        path.chmod(path.stat().st_mode | (0o055 if path.stat().st_mode & 0o100 else 0o044))


def program_of(server: PostgresServer) -> Path:
    return Path(f"/proc/{server.pid}/exe").readlink()


def copies_in(place: Path) -> set[str]:
    return {path.name for path in place.glob("postgres-*")}


async def ask(server: PostgresServer, question: str, *, host: str | None = None) -> object:
    conn = await asyncpg.connect(server.dsn(), host=host, port=server.port)
    try:
        return await conn.fetchval(question)
    finally:
        await conn.close()


async def test_postgres_is_neither_root_nor_has_a_right_of_root(postgres_server: PostgresServer):
    uid, rights = effective_ids_and_rights(postgres_server.pid)

    assert uid != 0
    assert rights == 0


async def test_data_in_a_closed_directory_needs_no_right_of_root(closed_dir: Path):
    server = PostgresServer(closed_dir / "deep" / "postgres")
    async with server:
        uid, rights = effective_ids_and_rights(server.pid)
        await ask(server, "CREATE TABLE kept AS SELECT 1 AS n")
        by_socket = await ask(server, "SELECT inet_server_addr()", host=str(server.socket_dir))
        await server.kill()
        await server.start()
        kept = await ask(server, "SELECT n FROM kept")

    assert uid != 0
    assert rights == 0
    assert by_socket is None
    assert kept == 1


@pytest.mark.slow
async def test_data_from_an_open_directory_is_readable_in_a_closed_one(
    empty_cluster: Path, closed_dir: Path, open_dir: Path
):
    opened = open_dir / "opened"
    async with copied_postgres(empty_cluster, opened) as server:
        await ask(server, "CREATE TABLE kept AS SELECT 1 AS n")
    moved = Path(shutil.move(opened, closed_dir / "moved"))

    async with PostgresServer(moved) as server:
        assert await ask(server, "SELECT n FROM kept") == 1


@pytest.mark.slow
async def test_a_temporary_directory_closed_to_others_is_no_obstacle(
    empty_cluster: Path, closed_dir: Path, monkeypatch: pytest.MonkeyPatch
):
    server = copied_postgres(empty_cluster, closed_dir / ("long" * 30) / "postgres")
    monkeypatch.setattr(tempfile, "tempdir", str(closed_dir))

    async with server:
        assert await ask(server, "SELECT 1") == 1


@pytest.mark.slow
async def test_programs_in_a_closed_directory_run_from_a_copy_made_once(
    closed_programs: Programs, place: Path, closed_dir: Path, empty_cluster: Path
):
    two = copied_postgres(empty_cluster, closed_dir / "two")
    umask = os.umask(0o077)
    try:
        async with PostgresServer(closed_dir / "one") as one, two:
            extension = await ask(one, "SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'")
            programs = {program_of(one), program_of(two)}
    finally:
        os.umask(umask)

    assert extension == 1
    assert copies_in(place) == {closed_programs.copy_name()}
    assert programs == {place / closed_programs.copy_name() / closed_programs.parts[0]}


async def test_readable_programs_run_where_they_are_installed(
    place: Path, open_dir: Path, empty_cluster: Path, monkeypatch: pytest.MonkeyPatch
):
    install(open_dir / "site-packages")
    installed = use(open_dir / "site-packages", monkeypatch)
    open_to_all(open_dir)

    async with copied_postgres(empty_cluster, open_dir / "in-place") as server:
        assert program_of(server) == installed.root / installed.parts[0]
    assert copies_in(place) == set()


@pytest.mark.slow
async def test_a_new_copy_removes_what_no_server_uses(
    closed_programs: Programs, place: Path, closed_dir: Path, empty_cluster: Path
):
    old, begun, used = (
        place / f"postgres-{name}" for name in ("17-0.1-aaaaaaaa", "18-0.6-bbbbbbbb.new", "17-0.2-cccccccc")
    )
    for directory in (old, begun, used):
        directory.mkdir(parents=True)
    (old / "lock").touch()
    (used / "lock").touch()
    in_use = program_copy._share(used, closed_programs)

    async with copied_postgres(empty_cluster, closed_dir / "data"):
        pass
    in_use.release()

    assert copies_in(place) == {used.name, closed_programs.copy_name()}


@pytest.mark.slow
async def test_a_damaged_copy_is_made_again(
    closed_programs: Programs, place: Path, closed_dir: Path, empty_cluster: Path
):
    async with copied_postgres(empty_cluster, closed_dir / "data") as server:
        program = program_of(server)
        whole = program.stat().st_size
    with program.open("r+b") as file:
        file.truncate(1000)

    async with PostgresServer(closed_dir / "data") as server:
        assert await ask(server, "SELECT 1") == 1
    assert program.stat().st_size == whole


@pytest.mark.slow
async def test_a_directory_owned_by_another_user_is_passed_over(
    closed_programs: Programs, place: Path, closed_dir: Path, empty_cluster: Path, monkeypatch: pytest.MonkeyPatch
):
    foreign = place.with_name("foreign")
    foreign.mkdir()
    os.chown(foreign, 65534, 65534)
    monkeypatch.setattr(program_copy, "PLACES", (foreign, place))

    async with copied_postgres(empty_cluster, closed_dir / "data"):
        assert copies_in(place) == {closed_programs.copy_name()}
    assert copies_in(foreign) == set()


async def test_a_failed_program_copy_is_reported_with_advice(
    closed_programs: Programs, place: Path, closed_site: Path, closed_dir: Path
):
    with (
        place.open("w"),
        pytest.raises(ProgramsUnreadable, match=rf"cannot read its programs in {closed_site}.*WAYLINE_POSTGRES_DSN"),
    ):
        await PostgresServer(closed_dir / "data").start()


async def test_a_directory_that_nothing_can_pass_is_named(closed_dir: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(postgres, "CWD", Path("/proc/none"))

    with pytest.raises(Unreachable, match=rf"may not enter {closed_dir} on the way.*WAYLINE_POSTGRES_DSN"):
        await PostgresServer(closed_dir / "postgres").start()
