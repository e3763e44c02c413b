"""What the contract tests read: the repository's own files, and the generator of proto/."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
from pydantic.fields import FieldInfo

ROOT = Path(__file__).parents[2]


def tool(name: str) -> ModuleType:
    """A script of tools/, as a module."""
    spec = spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def repository() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def proto() -> ModuleType:
    return tool("make_proto")


@pytest.fixture(scope="session")
def configuration() -> ModuleType:
    """tools/settings_table.py, as a module."""
    return tool("settings_table")


@pytest.fixture(scope="session")
def settings(configuration: ModuleType) -> dict[str, FieldInfo]:
    """Every setting of every process, by its environment variable."""
    return configuration.variables()
