"""Where the data is that evaluations measure with: recorded and public sets that are not in the repository."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).parents[2]


def path(*parts: str) -> Path:
    """A place in the shared data, there or not: in WAYLINE_SHARED, else in `shared` beside the repository."""
    return Path(os.environ.get("WAYLINE_SHARED") or REPOSITORY.parent / "shared").joinpath("data", *parts)


def needed(*parts: str) -> Path:
    """The same for a test, which is skipped where it is not there, saying so."""
    found = path(*parts)
    if not found.exists():
        pytest.skip(f"{found} is not here; set WAYLINE_SHARED to the folder that has data/{'/'.join(parts)}")
    return found


def rows(*parts: str) -> list[dict[str, Any]]:
    """The objects of a packed file, one a line; skips the test where it is not there."""
    with gzip.open(needed(*parts)) as lines:
        return [json.loads(line) for line in lines]
