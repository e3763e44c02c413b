"""Start services, and the `wayline` command, as processes forked from one that has imported them."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Mapping
from importlib import import_module
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


COMMAND = "wayline.standalone.cli"
IMPORTS = (
    *(f"wayline.standalone.{name}" for name in ("cli", "launch.up", "launch.sample_job")),
    *(f"wayline.{name}.app" for name in ("gateway", "router", "executor", "retrieval", "tool_registry", "tracing")),
)
"""What `wayline up` imports."""


def start_command(*words: str, cwd: Path, log: Path, env: Mapping[str, str]) -> Child:
    """Start a `wayline` command that stays and dies with this process; what it prints goes into `log`."""
    return fork(f"{__name__}:run_command", *words, imports=IMPORTS, cwd=cwd, log=log, env=env)


def run_command(*words: str) -> None:
    """Run a `wayline` command as its script does."""
    sys.argv = ["wayline", *words]
    import_module(COMMAND).main()
