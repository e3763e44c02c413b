"""Real documents, three questions, three doors: what Wayline does, in one run on a platform of its own.

The documents are what ships with Python: the topics of `pydoc` (the language reference) and its pages on a few modules
of the standard library, more than 200 pages of 2,500 characters. `make demo` starts a platform in a temporary directory
on free ports and ends it afterwards; with WAYLINE_URL and WAYLINE_NATS_URL set it uses the one that runs there.
"""

from __future__ import annotations

import asyncio
import json
import os
import pydoc
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any, TextIO

import nats

from wayline.client import Address, ApiError, Client, whole_trace

WAYLINE = str(Path(sys.executable).with_name("wayline"))
MODULES = (
    "argparse",
    "asyncio.queues",
    "collections",
    "datetime",
    "json",
    "logging",
    "pathlib",
    "re",
    "sched",
    "textwrap",
)
PAGE_CHARS = 2_500
PAGES_MIN = 200
READY_WITHIN_S = 120
ANSWER_WITHIN_S = 60
SPANS_WITHIN_S = 60
LISTED_WITHIN_S = 30
ORDER_DESK = Path(__file__).with_name("order_desk") / "order_desk.py"
DESK_MODEL = ORDER_DESK.with_name("model.py")
REFUND = "Pay the order A-1001 back."
TRACED = frozenset({"gateway", "router", "executor", "tool-registry", "retrieval"})

HTTP_QUESTION = "What happens when an exception occurs in a with statement's suite?"
COMMAND_QUESTION = "How does the match statement select a case block?"
BUS_QUESTION = "What does the global statement do?"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def simulated_model() -> Iterator[dict[str, str]]:
    """Yield the variables that point a platform at a simulated model, which calls the order desk's tools."""
    command = [WAYLINE, "simulate", "--script", str(DESK_MODEL), "--port", "0", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        served = json.loads(process.stdout.readline())
        # Without the keys of hosted providers: the questions are answered offline.
        yield {"WAYLINE_CHAT_BASE_URL": served["environment"]["WAYLINE_CHAT_BASE_URL"]}
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)


@contextmanager
def platform(extra: dict[str, str]) -> Iterator[dict[str, str]]:
    """Yield the environment of a running platform: the caller's own, or one that lives as long as the demo."""
    if "WAYLINE_URL" in os.environ and "WAYLINE_NATS_URL" in os.environ:
        yield dict(os.environ)
        return
    with tempfile.TemporaryDirectory(prefix="wayline-demo-") as data_dir:
        http_port, nats_port = free_port(), free_port()
        ports = {
            "WAYLINE_DATA_DIR": f"{data_dir}/wayline",
            "WAYLINE_HTTP_PORT": str(http_port),
            "WAYLINE_NATS_PORT": str(nats_port),
            "WAYLINE_CONSOLE_PORT": str(free_port()),
        }
        process = subprocess.Popen(
            [WAYLINE, "up"], env={**os.environ, **ports, **extra}, stdout=subprocess.PIPE, text=True
        )
        shown = threading.Thread(target=show_start, args=(process.stdout,), daemon=True)
        shown.start()
        try:
            url = f"http://127.0.0.1:{http_port}"
            asyncio.run(wait_ready(url, process))
            yield {**os.environ, **extra, "WAYLINE_URL": url, "WAYLINE_NATS_URL": f"nats://127.0.0.1:{nats_port}"}
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(30)
            shown.join(5)
    print("Stopped. Its data was temporary and is deleted; `make run` keeps what it is given.", file=sys.stderr)


def show_start(output: TextIO) -> None:
    """Show what the platform prints, but for its last line: nothing is kept here."""
    for line in output:
        if not line.startswith("Stopped;"):
            print(line, end="", file=sys.stderr)


async def wait_ready(url: str, process: subprocess.Popen[str]) -> None:
    """Wait until the platform answers, or end the demo with what is wrong."""
    async with Client(Address(url)) as client:
        for _ in range(READY_WITHIN_S * 10):
            if process.poll() is not None:
                raise SystemExit("wayline up ended; what it printed above is why")
            with suppress(ApiError):
                await client.get("/health/ready")
                return
            await asyncio.sleep(0.1)
    raise SystemExit(f"the platform was not ready within {READY_WITHIN_S} s")


def headline(text: str) -> None:
    print(f"\n── {text}")


def wayline(environment: dict[str, str], *arguments: str) -> None:
    subprocess.run([WAYLINE, *arguments], env=environment, check=True)


def write_documents(directory: Path) -> int:
    """Write each pydoc page as a text file, and return how many pages of PAGE_CHARS they are."""
    modules = {name: pydoc.plain(pydoc.render_doc(name)) for name in MODULES}
    documents = {**topics, **modules}
    for name, text in documents.items():
        (directory / f"{name}.txt").write_text(text)
    return sum(map(len, documents.values())) // PAGE_CHARS


def show(job: dict[str, Any]) -> None:
    """Show a job's answer, or end the demo with why there is none."""
    if "answer" not in job:
        reason = job["error"]["message"] if "error" in job else f"no answer came within {ANSWER_WITHIN_S} s"
        raise SystemExit(f"job {job['job_id']} is {job['status']}: {reason}")
    print(job["answer"])
    for number, citation in enumerate(job["citations"], 1):
        print(f"  [{number}] {citation['document']}")
    print(f"  {job['status']} · {job['steps']} steps · ${job['cost_usd']}")


async def ask_over_http(environment: dict[str, str]) -> str:
    async with Client(Address(environment["WAYLINE_URL"])) as client:
        job = await client.submit({"agent": "assistant", "input": HTTP_QUESTION}, wait_s=ANSWER_WITHIN_S)
    show(job)
    return job["job_id"]


async def wait_for_spans(environment: dict[str, str], job_id: str) -> None:
    """Wait until every service has sent its part of the trace: they send their spans once a second."""
    async with asyncio.timeout(SPANS_WITHIN_S), Client(Address(environment["WAYLINE_URL"])) as client:
        while True:
            if services_in((await whole_trace(client, job_id))["root"]) >= TRACED:
                return
            await asyncio.sleep(0.2)


def services_in(span: dict[str, Any]) -> set[str]:
    return {span["service"]}.union(*map(services_in, span["children"]))


async def ask_on_the_bus(environment: dict[str, str]) -> None:
    nc = await nats.connect(environment["WAYLINE_NATS_URL"])
    inbox = nc.new_inbox()
    result = await nc.subscribe(inbox)
    await nc.flush()
    body = json.dumps({"agent": "assistant", "input": BUS_QUESTION}).encode()
    await nc.publish("jobs.submit.default", body, headers={"Wayline-Reply-To": inbox})
    show(json.loads((await result.next_msg(timeout=ANSWER_WITHIN_S)).data)["job"])
    await nc.drain()


def pay_back(environment: dict[str, str], directory: Path) -> None:
    """Run the order desk, have a job call its tool, and show what the desk has written down."""
    refunds = directory / "refunds.txt"
    desk = subprocess.Popen(
        [sys.executable, str(ORDER_DESK)],
        env={**environment, "ORDER_DESK_REFUNDS": str(refunds)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        print("\n".join(offered_tools(environment)))
        if "WAYLINE_CHAT_BASE_URL" not in environment:
            print("(This platform has no simulated model that would call them: see examples/order_desk/README.md.)")
            return
        wayline(environment, "run", REFUND, "--model", "chat/local-chat")
        print(f"refunds.txt: {refunds.read_text().strip()}")
    finally:
        desk.terminate()
        desk.wait(30)


def offered_tools(environment: dict[str, str]) -> list[str]:
    """Return the lines of the order desk's tools, once they are listed."""
    for _ in range(LISTED_WITHIN_S * 2):
        listed = subprocess.run([WAYLINE, "tools"], env=environment, check=True, capture_output=True, text=True)
        if offered := [line for line in listed.stdout.splitlines() if line.startswith("orders__")]:
            return offered
        time.sleep(0.5)
    raise SystemExit(f"the order desk's tools were not listed within {LISTED_WITHIN_S} s")


def main() -> None:
    # Commands print between our own lines.
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    with simulated_model() as model, platform(model) as environment, tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary, "pydoc")
        directory.mkdir()
        pages = write_documents(directory)
        assert pages >= PAGES_MIN, f"pydoc has only {pages} pages here"
        headline(f"Ingesting Python's own documentation (pydoc): {pages} pages of {PAGE_CHARS:,} characters")
        wayline(environment, "ingest", str(directory))

        headline(f"First door, HTTP: {HTTP_QUESTION}")
        job_id = asyncio.run(ask_over_http(environment))
        headline(f"Second door, the command line: {COMMAND_QUESTION}")
        wayline(environment, "run", COMMAND_QUESTION)
        headline(f"Third door, a bare message on the bus: {BUS_QUESTION}")
        asyncio.run(ask_on_the_bus(environment))

        headline(f"A service of ours offers tools over the bus (examples/order_desk), to a simulated model: {REFUND}")
        pay_back(environment, Path(temporary))

        headline("The trace of the first job")
        asyncio.run(wait_for_spans(environment, job_id))
        wayline(environment, "trace", job_id)
        headline("What it all cost")
        wayline(environment, "costs")


if __name__ == "__main__":
    main()
