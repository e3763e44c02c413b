"""What the tests of the dashboards read, and the platform that they look at."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import pytest_asyncio
import yaml

from wayline.embedded import PostgresServer
from wayline.telemetry import metrics
from wayline.testkit.databases import Database, clone, drop
from wayline.testkit.fixtures import run

from .prometheus import DownloadFailed, unpack
from .questions import Json
from .watched_platform import WatchedPlatform, running

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "deploy"


def tool(name: str) -> ModuleType:
    """A script of tools/, as a module."""
    if str(ROOT / "tools") not in sys.path:
        sys.path.append(str(ROOT / "tools"))
    return import_module(name)


def provisioned() -> list[dict[str, Any]]:
    """Every datasource that Grafana is given."""
    files = (DEPLOY / "grafana/provisioning/datasources").glob("*.yaml")
    return [source for file in files for source in yaml.safe_load(file.read_text())["datasources"]]


def rules() -> list[dict[str, Any]]:
    """Every alert that Prometheus is given."""
    files = (DEPLOY / "prometheus/rules").glob("*.yml")
    return [rule for file in files for group in yaml.safe_load(file.read_text())["groups"] for rule in group["rules"]]


@pytest.fixture(scope="session")
def repository() -> Path:
    return ROOT


@pytest.fixture(params=sorted((DEPLOY / "grafana/dashboards").glob("*.json")), ids=lambda path: path.stem)
def dashboard(request: pytest.FixtureRequest) -> Json:
    return json.loads(request.param.read_text())


@pytest.fixture
def overview() -> Json:
    return json.loads((DEPLOY / "grafana/dashboards/overview.json").read_text())


@pytest.fixture
def cost() -> Json:
    return json.loads((DEPLOY / "grafana/dashboards/cost.json").read_text())


@pytest.fixture
def traces() -> Json:
    return json.loads((DEPLOY / "grafana/dashboards/traces.json").read_text())


@pytest.fixture
def prometheus_config() -> Json:
    return yaml.safe_load((DEPLOY / "prometheus/prometheus.yml").read_text())


@pytest.fixture(scope="session")
def downloaded(request: pytest.FixtureRequest) -> Path | DownloadFailed:
    """Where Prometheus and promtool are, or why they are not."""
    assert request.config.cache is not None
    try:
        return unpack(request.config.cache.mkdir("prometheus"))
    except DownloadFailed as error:
        return error


@pytest.fixture
def binaries(downloaded: Path | DownloadFailed) -> Path:
    """Prometheus and promtool; without them the test is skipped, and says why."""
    if isinstance(downloaded, DownloadFailed):
        pytest.skip(str(downloaded))
    return downloaded


@pytest.fixture(scope="module")
def lasting_database(postgres_server: PostgresServer) -> Iterator[Database]:
    """A fresh database for one module."""
    fresh = run(clone(postgres_server))
    yield fresh
    run(drop(fresh))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def watched(
    lasting_database: Database, downloaded: Path | DownloadFailed, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[WatchedPlatform]:
    """The whole platform after a scripted run, and a Prometheus that watched it where one could be had."""
    binaries = None if isinstance(downloaded, DownloadFailed) else downloaded
    # It counts for the process, in which other tests may have ended their bus.
    metrics.bus_errors.clear()
    async with running(lasting_database, tmp_path_factory.mktemp("dashboards"), binaries) as watched:
        yield watched
