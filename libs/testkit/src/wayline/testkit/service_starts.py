"""Start services, and the `wayline` command, as processes forked from one that has imported them."""

from __future__ import annotations

import os
import runpy
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from wayline.chassis import failpoints
from wayline.embedded.process import Child
from wayline.testkit.fork_server import fork

TRUST = "wayline.testkit.one_trust_store"
OF_MCP = (
    "mcp.server.mcpserver",
    "mcp.client.streamable_http",
    "uvicorn.protocols.http.auto",
    "wayline.testkit.described_tools",
)
ANTHROPIC = ("anthropic", "wayline.llm.anthropic.adapter")
OPENAI = ("openai", "wayline.llm.openai.adapter", "wayline.llm.openai_chat.adapter")
ROUTES = "wayline.testkit.gateway_routes"
IMPORTED_LATER = {
    "executor": {"ANTHROPIC_": ANTHROPIC, "OPENAI_": OPENAI, "WAYLINE_CHAT_": OPENAI},
    "gateway": {"": (ROUTES,)},
    "tool_registry": {"": OF_MCP},
}
"""What a service imports or makes once it runs, or calls a provider of which a variable tells, for up to 1.7 s."""


def start_service(name: str, *, cwd: Path, log: Path, env: Mapping[str, str]) -> Child:
    """Start a service that dies with this process; what it prints goes into `log`."""
    imports = [TRUST, f"wayline.{name}.app", *_imported_later(name, env)]
    return fork(f"{__name__}:run_service", name, imports=imports, cwd=cwd, log=log, env=env)


def _imported_later(name: str, env: Mapping[str, str]) -> list[str]:
    """Return what a service imports once it does what its variables ask for."""
    return [
        module
        for prefix, modules in IMPORTED_LATER.get(name, {}).items()
        if any(variable.startswith(prefix) for variable in env)
        for module in modules
    ]


def run_service(name: str) -> None:
    """Run a service as `python -m` does, with the failpoint that its environment names."""
    failpoints.arm(os.environ.get("WAYLINE_FAILPOINT", ""))
    sys.argv = [name]
    runpy.run_module(f"wayline.{name}", run_name="__main__", alter_sys=True)


COMMAND = "wayline.standalone.cli"
POLL_S = 0.01
SERVICES = ("gateway", "router", "executor", "retrieval", "tool_registry", "tracing", "notifier")
IMPORTS = (
    TRUST,
    *(f"wayline.standalone.{name}" for name in ("cli", "launch.up", "launch.sample_job", "doctor.report")),
    *(f"wayline.standalone.{name}" for name in ("bus.accounts_file", "launch.ready_text", "servers.nats_config")),
    "wayline.testkit.command_tree",
    *(f"wayline.{name}.app" for name in SERVICES),
    ROUTES,
    *OF_MCP,
    *(
        "anyio._backends._asyncio",
        "pgvector.asyncpg",
        "re2",
        "rich.logging",
        "uvicorn.lifespan.off",
        "uvicorn.protocols.websockets.auto",
    ),
)
"""What `wayline up` imports, and what its registry does once it runs."""


ALL = (*IMPORTS, *ANTHROPIC, *OPENAI, "wayline.sdk")
"""What a fork server of a whole run imports sooner or later."""


def start_command(*words: str, cwd: Path, log: Path, env: Mapping[str, str]) -> Child:
    """Start a `wayline` command that stays and dies with this process; what it prints goes into `log`."""
    imports = [*IMPORTS, *_imported_later("executor", env)]
    return fork(f"{__name__}:run_command", *words, imports=imports, cwd=cwd, log=log, env=env)


def run_command(*words: str) -> None:
    """Run a `wayline` command as its script does."""
    sys.argv = ["wayline", *words]
    import_module(COMMAND).main()


def finish_command(
    *words: str, cwd: Path, env: Mapping[str, str], stdin: str, within_s: float
) -> subprocess.CompletedProcess[str]:
    """Run a `wayline` command to its end, in a process that has imported it: a new Python's imports take a second."""
    with tempfile.TemporaryDirectory(prefix="wayline-command-") as made:
        given, out, err = (Path(made) / name for name in ("stdin", "stdout", "stderr"))
        given.write_text(stdin)
        files = [str(file) for file in (given, out, err)]
        log = Path(made) / "log"
        child = fork(f"{__name__}:run_command_on", files, *words, imports=IMPORTS, cwd=cwd, log=log, env=env)
        deadline = time.monotonic() + within_s
        while not child.exited:
            if time.monotonic() > deadline:
                child.process.send_signal(signal.SIGKILL)
                raise subprocess.TimeoutExpired(words, within_s)
            time.sleep(POLL_S)
        assert child.process.returncode is not None
        told = [file.read_text() if file.exists() else "" for file in (out, err)]
        # The traceback of an uncaught exception.
        told[1] += log.read_text()
        return subprocess.CompletedProcess(words, child.process.returncode, *told)


def run_command_on(files: list[str], *words: str) -> None:
    """Run a `wayline` command that reads and writes these files in place of the three standard streams."""
    flags = (os.O_RDONLY, os.O_WRONLY | os.O_CREAT, os.O_WRONLY | os.O_CREAT)
    for number, (file, how) in enumerate(zip(files, flags, strict=True)):
        opened = os.open(file, how)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - it stays open
    run_command(*words)
