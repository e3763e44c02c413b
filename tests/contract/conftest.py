"""What the contract tests read: the repository's own files, and the generator of proto/."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from pydantic.fields import FieldInfo

ROOT = Path(__file__).parents[2]


def tool(name: str) -> ModuleType:
    """A script of tools/, as a module: they find each other as they do when they are run."""
    if str(ROOT / "tools") not in sys.path:
        sys.path.append(str(ROOT / "tools"))
    return import_module(name)


@pytest.fixture(scope="session")
def repository() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def proto() -> ModuleType:
    return tool("make_proto")


@pytest.fixture(scope="session")
def bus_map() -> ModuleType:
    """tools/bus_map.py, as a module."""
    return tool("bus_map")


@pytest.fixture(scope="session")
def configuration() -> ModuleType:
    """tools/settings_table.py, as a module."""
    return tool("settings_table")


@pytest.fixture(scope="session")
def settings(configuration: ModuleType) -> dict[str, FieldInfo]:
    """Every setting of every process, by its environment variable."""
    return configuration.variables()


@pytest.fixture(scope="session")
def first_run() -> ModuleType:
    """tools/first_run.py, as a module."""
    return tool("first_run")
