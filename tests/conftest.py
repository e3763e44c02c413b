"""The fixtures every test may ask for: real servers, started when first used."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import hypothesis
import pytest
import structlog
from opentelemetry import context

from wayline.embedded import ports
from wayline.testkit.walks import examples

# As in the Makefile: what is imported here and in child processes is compiled once.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A NATS server of one test works for milliseconds: more threads than one, and garbage looked for in a heap of 4 MB,
# are a third of them.
os.environ.setdefault("GOMAXPROCS", "1")
os.environ.setdefault("GOGC", "400")

pytest_plugins = [
    "wayline.testkit.made_once",
    "wayline.testkit.fixtures",
    "wayline.testkit.processes_left",
    "wayline.testkit.longest_first",
    "wayline.testkit.taking_turns",
    "wayline.testkit.garbage",
    "wayline.testkit.one_trust_store",
    "wayline.testkit.warm_workers",
]

# The model on board takes half a second to load, and few tests are about meaning. Those name it.
os.environ.setdefault("WAYLINE_RETRIEVAL_EMBEDDING_MODEL", "lexical-hash-384")

# A time for each example would be an assertion about the machine.
hypothesis.settings.register_profile("wayline", deadline=None, max_examples=examples(100))
hypothesis.settings.load_profile("wayline")

structlog.configure(
    processors=[structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)]
)


def pytest_configure() -> None:
    """Give each worker its own part of the free ports: two that look at the same time would find the same one free."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    share = len(ports.FREE_PORTS) // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    ports.FREE_PORTS = ports.FREE_PORTS[worker * share : (worker + 1) * share]


ONLY_SLOW = frozenset({"conformance", "evals", "reference_servers"})
"""Folders of which `make test` runs nothing."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave unread what would be deselected whole: its imports are dear, and every worker would have them."""
    left_out = collection_path.name in ONLY_SLOW and collection_path.parent == Path(__file__).parent
    return True if left_out and config.option.markexpr == "not slow" else None


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Fail a test that leaves a span as the current one: spans of every later test would be in its trace."""
    if context.get_current():
        context.attach(context.Context())
        pytest.fail(f"{item.name} left a span as the current one", pytrace=False)
