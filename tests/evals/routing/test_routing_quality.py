"""The figures that the router must reach on subjects that it has not learned from."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SHARED = Path(os.environ.get("WAYLINE_SHARED") or HERE.parents[3] / "shared")
APGR_MIN = {"MMLU": 0.56, "GSM8K": 0.59}


@pytest.mark.slow
@pytest.mark.timeout(1_200)
def test_routing_recovers_more_than_length_words_or_a_regex():
    if not (SHARED / "data/routing-routellm-dev").is_dir():
        pytest.skip("the public routing data is not there: set WAYLINE_SHARED")
    done = subprocess.run(
        [sys.executable, str(HERE), "--json"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "WAYLINE_SHARED": str(SHARED)},
    )
    measured = json.loads(done.stdout)["measured"]

    for part, least in APGR_MIN.items():
        ours = measured["ours"][part]["apgr"]
        assert ours > least, part
        assert all(ours > parts[part]["apgr"] for name, parts in measured.items() if name != "ours"), part
