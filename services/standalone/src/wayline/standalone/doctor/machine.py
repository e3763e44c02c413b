"""This machine: Python, the servers' programs, the data directory, disk and ports."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from pathlib import Path

from wayline.embedded import BinaryMissing, is_free
from wayline.embedded.binaries import nats_server, postgres_bin
from wayline.standalone.doctor.finding import Finding, Findings, note, ok, problem, warning
from wayline.standalone.doctor.gateway import gateway_url
from wayline.standalone.errors import RestoreUnfinished
from wayline.standalone.services import MEMBERS
from wayline.standalone.settings import Settings
from wayline.standalone.setup.installation import Installation

PYTHON_MIN = (3, 11)
OCR_PROGRAM, OCR_LANGUAGES = "tesseract", "WAYLINE_RETRIEVAL_OCR_LANGUAGES"
DISK_FREE_MIN = 1_000_000_000
DISK_FREE_WANTED = 5_000_000_000


async def python() -> Findings:
    """Examine the version of Python."""
    found = ".".join(str(part) for part in sys.version_info[:3])
    if sys.version_info < PYTHON_MIN:
        yield problem("python", f"version {found} is too old", "install Python 3.11 or newer, then `make setup`")
    else:
        yield ok("python", f"version {found}")


async def service_settings() -> Findings:
    """Look for variables that no service reads."""
    unknown = [sentence for member in MEMBERS for sentence in member.unknown_settings()]
    for sentence in unknown:
        yield warning("settings", sentence, "nothing reads it: correct or unset it (docs/operating.md lists all)")
    if not unknown:
        yield ok("settings", "every variable of a service is one of its settings")


async def programs(settings: Settings) -> Findings:
    """Find the programs of the embedded servers, where they are used."""
    for name, find, external in (
        ("nats-server", nats_server, settings.nats_url),
        ("postgres", postgres_bin, settings.admin_dsn),
    ):
        if external:
            yield ok(name, "a server of your own is used")
            continue
        try:
            yield ok(name, str(find()))
        except BinaryMissing as error:
            yield problem(name, str(error), "run `make setup`")


async def text_recognition() -> Findings:
    """Find the program that reads scanned pages, where a setting asks for it."""
    languages, program = os.environ.get(OCR_LANGUAGES, ""), shutil.which(OCR_PROGRAM)
    if not languages:
        there = f"{program} is there" if program else f"no {OCR_PROGRAM} here"
        yield ok("text recognition", f"off: scanned PDFs are not searchable ({there})")
    elif program is None:
        yield problem(
            "text recognition",
            f"{OCR_LANGUAGES} is {languages!r} and there is no {OCR_PROGRAM} on the PATH",
            "install tesseract with these languages, such as `apt install tesseract-ocr`",
        )
    else:
        yield ok("text recognition", f"{program} reads scanned PDFs in {languages}")


async def data_directory(installation: Installation) -> Findings:
    """Examine whether the data directory is writable, and its secrets are closed to other users."""
    root = installation.root
    if not root.exists():
        yield note("data directory", f"{root} does not exist yet", "`wayline up` makes it")
        return
    if not os.access(root, os.W_OK | os.X_OK):
        yield problem("data directory", f"{root} cannot be written by this user", f"sudo chown -R $(id -u) {root}")
        return
    open_to_others = [path for path in _secrets(installation) if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)]
    for path in open_to_others:
        yield problem("data directory", f"{path} holds secrets and others may read it", f"chmod go= {path}")
    try:
        installation.require_restored()
    except RestoreUnfinished as error:
        yield problem("data directory", str(error), "restore it")
        return
    if not open_to_others:
        yield ok("data directory", str(root))


def _secrets(installation: Installation) -> list[Path]:
    if not installation.credentials.exists():
        return []
    conf = installation.nats / "nats.conf"
    return [installation.credentials, *installation.credentials.iterdir(), *([conf] if conf.exists() else [])]


async def disk(installation: Installation) -> Findings:
    """Examine the free room for the log of jobs and the database."""
    there = next(path for path in (installation.root, *installation.root.parents) if path.exists())
    free = shutil.disk_usage(there).free
    text = f"{free / 1e9:.1f} GB free on the disk of {installation.root}"
    if free < DISK_FREE_MIN:
        yield problem("disk", text, "make room, or set WAYLINE_DATA_DIR to another disk")
    elif free < DISK_FREE_WANTED:
        yield warning("disk", text, "make room soon")
    else:
        yield ok("disk", text)


async def ports(settings: Settings, installation: Installation) -> Findings:
    """Examine whether the ports of `wayline up` are free, unless it runs."""
    running = installation.running()
    if running is not None:
        yield ok("ports", f"`wayline up` runs (process {running['pid']})")
        return
    if not settings.nats_url:
        yield _port("NATS", settings.nats_port, "WAYLINE_NATS_PORT")
    if gateway_url(settings, installation) is None:
        yield _port("the gateway", settings.http_port, "WAYLINE_HTTP_PORT")


def _port(who: str, port: int, variable: str) -> Finding:
    if is_free(port):
        return ok("ports", f"{port} is free for {who}")
    return problem("ports", f"{port}, wanted for {who}, is taken by another program", f"set {variable} to a free port")
