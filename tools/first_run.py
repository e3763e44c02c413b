"""Do what README.md tells a new user, in a clean clone: each command, and when it had its effect.

python tools/first_run.py [--within 180]

Ends with 1 where a command fails, or where no job, trace and cost were seen in time.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).parent.parent
RUN = "make run"
PORTS = {"8080": "WAYLINE_HTTP_PORT", "4222": "WAYLINE_NATS_PORT", "8081": "WAYLINE_CONSOLE_PORT"}
"""The ports that README.md names, and the variables that choose others: theirs may be taken here."""
SEEN = {
    "it is ready": r"^Ready after",
    "a job runs": r"^ +step 1 ",
    "its cost": r"^completed · .* · \$\S+",
    "its trace": r"^invoke_agent ",
    "the console's address": r"^ +console +(\S+)",
}
"""What `make run` prints, in its order, by what a user sees in it."""
SETUP_MAX_S, COMMAND_MAX_S, STOP_MAX_S = 600, 120, 60


@dataclass(frozen=True)
class Block:
    """A block of code of README.md."""

    language: str
    text: str
    section: str

    @property
    def commands(self) -> str:
        """Return what a user types, without the remarks behind it."""
        return re.sub(r"\s+# .*$", "", self.text, flags=re.MULTILINE).strip()


def blocks_of(readme: str) -> list[Block]:
    """Return the blocks of code, each with the heading that it stands under."""
    blocks, section = list[Block](), ""
    for found in re.finditer(r"^## ([^\n]+)$|^```(\w*)\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL):
        if found[1] is not None:
            section = found[1]
        else:
            blocks.append(Block(found[2], found[3], section))
    return blocks


def doors_of(readme: str) -> dict[str, Block]:
    """Return what a user is told to try once it runs, by what it goes through."""
    doors = dict[str, Block]()
    for block in blocks_of(readme):
        if block.section == "Three doors":
            name = {"python": "NATS"}.get(block.language) or block.commands.split()[0]
            doors[name] = block
    return doors


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@dataclass
class FirstRun:
    """A clone in which README.md's commands run, and when each thing was seen."""

    clone: Path
    ports: dict[str, str] = field(default_factory=lambda: {port: str(free_port()) for port in PORTS})
    moments: dict[str, float] = field(default_factory=dict)
    printed: list[str] = field(default_factory=list)
    begun: float = field(default_factory=time.monotonic)

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("WAYLINE_", "VIRTUAL_ENV"))}
        keys = {name for name in kept if name.endswith("_API_KEY")}
        chosen = {variable: self.ports[port] for port, variable in PORTS.items()}
        # A clone's own commands are named as README.md names them.
        path = f"{self.clone / '.venv' / 'bin'}{os.pathsep}{kept.get('PATH', '')}"
        return {name: value for name, value in kept.items() if name not in keys} | chosen | {"PATH": path}

    def here(self, text: str) -> str:
        """Return what README.md says with the ports of this run."""
        return re.sub(r"(?<=127\.0\.0\.1:)\d+", lambda port: self.ports.get(port[0], port[0]), text)

    def note(self, what: str) -> None:
        self.moments[what] = time.monotonic() - self.begun
        print(f"{self.moments[what]:7.1f} s  {what}", flush=True)

    def follow(self, process: subprocess.Popen[str]) -> threading.Thread:
        """Note what is seen in what a process prints, as it comes."""

        def read() -> None:
            assert process.stdout is not None
            for line in process.stdout:
                self.printed.append(line)
                for what, pattern in SEEN.items():
                    if what not in self.moments and re.search(pattern, line):
                        self.note(what)

        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        return thread

    def wait(self, is_true: Callable[[], bool], process: subprocess.Popen[str], within_s: float, why: str) -> None:
        deadline = time.monotonic() + within_s
        while not is_true():
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"{''.join(self.printed[-40:])}\nmissed: {why}")
            time.sleep(0.1)

    def try_door(self, name: str, block: Block) -> None:
        """Run a command of README.md, and see that a job answered."""
        text = self.here(block.text if block.language == "python" else block.commands)
        command = (
            [str(self.clone / ".venv/bin/python"), "-c", text] if block.language == "python" else ["bash", "-c", text]
        )
        done = subprocess.run(
            command,
            check=False,
            cwd=self.clone,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=COMMAND_MAX_S,
        )
        if done.returncode or not done.stdout.strip():
            raise SystemExit(f"{done.stdout}{done.stderr}\nmissed: the answer through {name}")
        self.note(f"an answer through {name}")

    def look_at(self, path: str, words: str) -> None:
        """Read a page of the console."""
        with urllib.request.urlopen(self.here(f"http://127.0.0.1:8081{path}"), timeout=COMMAND_MAX_S) as answer:
            page = answer.read().decode()
        if words not in page:
            raise SystemExit(f"missed: {words!r} at {path} of the console")
        self.note(f"the console's page {path}")


def stop(process: subprocess.Popen[str], *, within_s: float) -> None:
    """Stop a process and those that it started, as Ctrl-C does; kill them where they go on."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)
    try:
        process.wait(within_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise SystemExit(f"missed: an end within {within_s:.0f} s of Ctrl-C") from None


def first_run(clone: Path, within_s: float) -> None:
    """Do all of it, and stop it as a user does."""
    subprocess.run(["git", "clone", "--quiet", str(REPOSITORY), str(clone)], check=True)
    readme = (clone / "README.md").read_text()
    first = blocks_of(readme)[0].commands.splitlines()
    assert any(line.strip() == RUN for line in first), f"README.md begins without `{RUN}`"
    run = FirstRun(clone)
    process = subprocess.Popen(
        RUN.split(),
        cwd=clone,
        env=run.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    reading = run.follow(process)
    try:
        run.wait(lambda: len(run.moments) == len(SEEN), process, SETUP_MAX_S, f"one of {', '.join(SEEN)}")
        job_id = re.search(r"trace: wayline trace (\S+)", "".join(run.printed))
        assert job_id is not None, "no id of the job was printed"
        run.look_at(f"/jobs/{job_id[1]}?view=trace", "invoke_agent")
        run.look_at("/costs", "Spent")
        last = max(run.moments.values())
        for name, block in doors_of(readme).items():
            run.try_door(name, block)
    finally:
        stop(process, within_s=STOP_MAX_S)
        reading.join(STOP_MAX_S)
    run.note("stopped by Ctrl-C")
    if "Traceback" in "".join(run.printed) or "Stopped" not in "".join(run.printed):
        raise SystemExit(f"{''.join(run.printed[-40:])}\nmissed: an orderly end")
    print(f"A job, its trace and its cost were seen after {last:.0f} s of {within_s:.0f}.")
    if last > within_s:
        raise SystemExit(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--within", type=float, default=180, help="seconds")
    given = parser.parse_args()
    made = Path(tempfile.mkdtemp(prefix="wayline-first-run-"))
    try:
        first_run(made / "wayline", given.within)
    finally:
        shutil.rmtree(made, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
