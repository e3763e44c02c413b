"""Jobs that a person steers, where every service has no more rights on the bus than its own."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import httpx2
import pytest

from .conftest import Installed

DEAR = {
    "provider": "chat",
    "model": "dear",
    "tier": "standard",
    "prices": {"rates": {"input": "10", "output": "50"}, "source": "ours"},
}
TOO_LITTLE = "0.000001"


@pytest.mark.timeout(120)
def test_raising_cancelling_and_refusing_jobs_violates_no_permission(
    fresh: Installed,
):
    # Nobody answers there: no job of this test comes so far.
    fresh.more = {"WAYLINE_CHAT_BASE_URL": "http://127.0.0.1:9/v1"}
    fresh.start()
    (fresh.data.parent / "card.json").write_text(json.dumps(DEAR))
    fresh.run_json("models", "add", "card.json")

    parked = submit(fresh, at_cap="park")
    fresh.run_json("jobs", "raise", parked["job_id"], str(Decimal(TOO_LITTLE) * 2))
    fresh.run_json("jobs", "cancel", parked["job_id"])
    ended = follow(fresh, parked["job_id"])
    refused = submit(fresh, at_cap="partial")

    assert parked["status"] == "parked"
    assert "budget.raised" in ended
    assert ended[-1] == "job.cancelled"
    assert refused["error"]["code"] == "budget_too_small"
    assert "permissions violation" not in (fresh.data / "logs" / "wayline.log").read_text()


def submit(installed: Installed, **options: str) -> dict[str, Any]:
    asked = {"model": "chat/dear", "budget_usd": TOO_LITTLE, **options}
    body = {"agent": "assistant", "input": "hello", "options": asked}
    url = f"http://127.0.0.1:{installed.http_port}/v1/jobs?wait=20"
    return httpx2.post(url, json=body, timeout=30).raise_for_status().json()


def follow(installed: Installed, job_id: str) -> list[str]:
    """The types of its events, until its end."""
    done = installed.wayline("jobs", "tail", job_id, "--json")
    return [json.loads(line)["type"] for line in done.stdout.splitlines()]
