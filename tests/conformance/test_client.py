"""The official conformance suite against the MCP client with which the tool-registry reaches servers."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from .figures import note
from .suite import WITHIN_S, check_client, expected_failures

CLIENT = Path(__file__).with_name("client.py")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(WITHIN_S + 60)]


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])
async def test_the_client_passes_all_scenarios_but_those_named(revision: str):
    report = await check_client(f"{sys.executable} {CLIENT}", revision)
    note("the tool-registry's client", revision, report)

    assert len(report.required) >= 15, report.told
    assert report.failed == expected_failures("client", revision).keys(), report.told
