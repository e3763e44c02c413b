"""Start services as processes, forked from one that has imported them."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Mapping
from pathlib import Path

from wayline.chassis import failpoints
from wayline.embedded.process import Child
from wayline.testkit.fork_server import fork


def start_service(name: str, *, cwd: Path, log: Path, env: Mapping[str, str]) -> Child:
    """Start a service that dies with this process; what it prints goes into `log`."""
    return fork(f"{__name__}:run_service", name, imports=[f"wayline.{name}.app"], cwd=cwd, log=log, env=env)


def run_service(name: str) -> None:
    """Run a service as `python -m` does, with the failpoint that its environment names."""
    failpoints.arm(os.environ.get("WAYLINE_FAILPOINT", ""))
    sys.argv = [name]
    runpy.run_module(f"wayline.{name}", run_name="__main__", alter_sys=True)
