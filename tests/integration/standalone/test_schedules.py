"""`wayline schedules` as its users run it."""

from __future__ import annotations

import json

import pytest

from wayline.testkit import until
from wayline.testkit.fixtures import run

from .conftest import Installed


@pytest.mark.timeout(180)
def test_a_schedule_is_created_shown_run_and_deleted(fresh: Installed):
    fresh.start()

    created = fresh.run_json("schedules", "create", "morning", "What is new?", "--cron", "0 7 * * MON-FRI")
    twice = fresh.wayline("schedules", "create", "morning", "Again?", "--cron", "0 8 * * *")
    replaced = fresh.run_json("schedules", "create", "morning", "Again?", "--at", "7d", "--replace", "--user", "ada")
    wrong = fresh.wayline("schedules", "create", "evening", "Done?", "--cron", "61 7 * * *")
    accepted = fresh.run_json("schedules", "run", "morning")

    async def ended() -> bool:
        [last] = fresh.run_json("schedules", "show", "morning")["firings"]
        return last["status"] == "completed"

    run(until(ended, within=30, why="its job has ended"))
    drawn = fresh.wayline("schedules", "show", "morning").stdout
    disabled = fresh.run_json("schedules", "disable", "morning")
    listed = fresh.wayline("schedules", "list").stdout
    enabled = fresh.run_json("schedules", "enable", "morning")
    deleted = fresh.run_json("schedules", "delete", "morning")
    missing = fresh.wayline("schedules", "show", "morning")

    assert (created["version"], len(created["next_firings"])) == (1, 5)
    assert (twice.returncode, "PUT changes it" in twice.stderr) == (1, True)
    assert (replaced["version"], replaced["cron"], replaced["job"]["user_id"]) == (2, None, "ada")
    assert (wrong.returncode, "Bad minute" in wrong.stderr) == (1, True)
    assert f"completed\t{accepted['job_id']}" in drawn
    assert (disabled["next_at"], "disabled" in listed) == (None, True)
    assert (enabled["next_at"], deleted) == (replaced["next_at"], {"deleted": True})
    assert (missing.returncode, "no schedule 'morning'" in missing.stderr) == (1, True)
    job = json.loads(fresh.wayline("jobs", "show", accepted["job_id"], "--json").stdout)
    assert job["schedule"]["schedule"] == "morning"
    assert "permissions violation" not in (fresh.data / "logs" / "wayline.log").read_text()
