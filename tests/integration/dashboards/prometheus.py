"""A real Prometheus for a test: Debian's package, unpacked without installing it."""

from __future__ import annotations

import fcntl
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import yaml

from wayline.embedded import free_port
from wayline.embedded.process import Child, spawn
from wayline.testkit import until

DOWNLOAD_WITHIN_S = 90
START_WITHIN_S = 20.0
END_WITHIN_S = 10.0
EVERY = "500ms"


class DownloadFailed(Exception):
    """Debian's package could not be had; the text is what apt said."""


def unpack(cache: Path) -> Path:
    """The directory with `prometheus` and `promtool`. Raises DownloadFailed."""
    there = cache / "unpacked" / "usr" / "bin"
    with (cache / "lock").open("w") as lock:
        # Another worker may be fetching it: to fetch and unpack it takes four seconds of CPU.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (there / "promtool").exists():
            with tempfile.TemporaryDirectory(dir=cache) as name:
                fresh = Path(name)
                package = _download(fresh)
                subprocess.run(["dpkg-deb", "-x", package, fresh / "unpacked"], check=True)
                (fresh / "unpacked").rename(cache / "unpacked")
    return there


def _download(into: Path) -> Path:
    # The list of packages may be missing or name a version that is gone: then it is fetched anew, once.
    tries = (["apt-get", "download", "prometheus"], ["apt-get", "update"], ["apt-get", "download", "prometheus"])
    said = ""
    for command in tries:
        try:
            done = subprocess.run(
                command, cwd=into, capture_output=True, text=True, timeout=DOWNLOAD_WITHIN_S, check=False
            )
            said += done.stderr
        except (OSError, subprocess.TimeoutExpired) as error:
            said += f"{' '.join(command)}: {error}\n"
        if found := list(into.glob("prometheus_*.deb")):
            return found[0]
    raise DownloadFailed(f"Debian's package `prometheus` could not be downloaded: {said.strip()}")


@dataclass
class Prometheus:
    """A running server."""

    url: str
    child: Child

    async def ask(self, path: str, **parameters: Any) -> Any:
        """The answer of its HTTP interface, or an error that says what it said."""
        async with httpx2.AsyncClient(base_url=self.url, timeout=30) as client:
            said = (await client.get(f"/api/v1/{path}", params=parameters)).json()
        if said["status"] != "success":
            raise ValueError(said["error"])
        return said["data"]

    async def stop(self) -> None:
        if not await self.child.end(signal.SIGTERM, within_s=END_WITHIN_S):
            await self.child.kill()


async def start(binaries: Path, shipped: Path, directory: Path, *, targets: list[str]) -> Prometheus:
    """Start one with the shipped configuration and rules, but quick, and with `targets` in place of the containers."""
    shutil.copytree(shipped, directory / "config")
    config = yaml.safe_load((shipped / "prometheus.yml").read_text())
    config["global"] = {"scrape_interval": EVERY, "scrape_timeout": EVERY, "evaluation_interval": EVERY}
    [scrape] = config["scrape_configs"]
    del scrape["dns_sd_configs"]
    scrape["static_configs"] = [{"targets": targets}]
    (directory / "config" / "prometheus.yml").write_text(yaml.safe_dump(config))
    address = f"127.0.0.1:{free_port()}"
    log = directory / "prometheus.log"
    child = spawn(
        [
            binaries / "prometheus",
            f"--config.file={directory / 'config' / 'prometheus.yml'}",
            f"--storage.tsdb.path={directory / 'data'}",
            f"--web.listen-address={address}",
        ],
        cwd=directory,
        log=log,
        death_signal=signal.SIGKILL,
    )
    running = Prometheus(f"http://{address}", child)

    async def ready() -> bool:
        assert not child.exited, f"prometheus ended at its start:\n{log.read_text()}"
        try:
            async with httpx2.AsyncClient(timeout=5) as client:
                return (await client.get(f"{running.url}/-/ready")).status_code == 200
        except httpx2.TransportError:
            return False

    await until(ready, within=START_WITHIN_S, why="prometheus is ready")
    return running
