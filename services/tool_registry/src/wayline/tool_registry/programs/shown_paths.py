"""Which files of the machine a confined program sees: the system's, its runner's, and what the operator names."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store")
SETTINGS = (
    *("alternatives", "ca-certificates", "crypto-policies", "fonts", "ld.so.cache", "ld.so.conf", "ld.so.conf.d"),
    *("localtime", "mime.types", "nsswitch.conf", "os-release", "pki", "protocols", "services", "ssl", "timezone"),
)
"""Of /etc, where passwords are too."""
RUNTIME = ("bin", "lib", "lib64", "libexec", "pyvenv.cfg")
"""What an interpreter needs of the directory that it is installed in; beside it may be anything, as in a home."""
LINKS_MAX = 16


def system_links() -> dict[str, str]:
    """Return the directories of the system that are links, as `/bin` is to `usr/bin`."""
    return {place: os.readlink(place) for place in SYSTEM if os.path.islink(place)}


def shown_paths(program: str, search_path: str, named: Iterable[str]) -> list[str]:
    """Return the files and directories that a program may read, each where it is; the outer ones come first.

    `named` are the operator's own words. A tenant's arguments show nothing: they could name any file.
    """
    found = [place for place in SYSTEM if os.path.isdir(place) and not os.path.islink(place)]
    found += [f"/etc/{name}" for name in SETTINGS]
    for place in (program, *_directories(search_path)):
        found += _runtime(place)
    found += [place for place in named if os.path.isabs(place)]
    links = system_links()
    real = {os.path.normpath(place) for place in found if os.path.exists(place)}
    return sorted(place for place in real if place != "/" and f"/{place.split('/')[1]}" not in links)


def visible_search_path(search_path: str, shown: Iterable[str]) -> str:
    """Return the directories of a PATH that a program sees."""
    roots = (*shown, *system_links())
    seen = [one for one in _directories(search_path) if any(is_below(one, root) for root in roots)]
    return os.pathsep.join(seen) or os.defpath


def is_below(place: str, directory: str) -> bool:
    """Return whether a path is a directory or lies in it."""
    # Not by `Path`: some thousand comparisons are made before a program starts.
    place, directory = os.path.normpath(place), os.path.normpath(directory)
    return place == directory or place.startswith(f"{directory.rstrip('/')}/")


def _directories(search_path: str) -> list[str]:
    return [one for one in search_path.split(os.pathsep) if os.path.isabs(one) and os.path.isdir(one)]


def _runtime(place: str) -> Iterator[str]:
    """Yield a program or a directory of programs, what each link leads to, and the interpreter around them."""
    for _ in range(LINKS_MAX):
        yield place
        directory = Path(place) if os.path.isdir(place) else Path(place).parent
        if directory.name == "bin":
            yield from (str(directory.parent / name) for name in RUNTIME if _is_runtime(directory.parent))
        if not os.path.islink(place):
            return
        place = os.path.normpath(os.path.join(os.path.dirname(place), os.readlink(place)))


def _is_runtime(prefix: Path) -> bool:
    """Return whether an interpreter is installed in a directory."""
    return (
        (prefix / "pyvenv.cfg").exists()
        or (prefix / "lib/node_modules").is_dir()
        or any((prefix / "lib").glob("python3*/os.py"))
    )
