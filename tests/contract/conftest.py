"""What the contract tests read: the repository's own files, and the generator of proto/."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def repository() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def proto() -> ModuleType:
    """tools/make_proto.py, as a module."""
    spec = spec_from_file_location("make_proto", ROOT / "tools" / "make_proto.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules["make_proto"] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
