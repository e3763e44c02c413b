"""A schedule that was due when a router read it is fired only if it is still so when the router decides."""

from __future__ import annotations

from typing import Any, cast

import pytest

from wayline.router.adapters.schedules.firings import Firings

from .conftest import TENANT, Office

CONFIG = '{"cron": "0 * * * *", "job": {"agent": "assistant", "input": "go"}}'
NOBODY = cast("Any", None)
"""No bus: what is not decided is not submitted."""

MEANWHILE = {
    "changed": "UPDATE schedules SET version = 2, next_at = now() - interval '1 s'",
    "decided by another router": "UPDATE schedules SET next_at = now() + interval '1 h'",
    "disabled": "UPDATE schedules SET version = 2, next_at = NULL",
    "deleted": "DELETE FROM schedules",
    "deleted and created again": "UPDATE schedules SET uid = 'u2'",
}


@pytest.mark.parametrize("statement", MEANWHILE.values(), ids=MEANWHILE)
async def test_a_plan_that_changed_since_it_was_read_fires_nothing(office: Office, statement: str):
    firings = Firings(NOBODY, office.store, every_s=3_600, missed_max_s=3_600)
    await office.store.execute(
        TENANT,
        "INSERT INTO schedules (tenant, name, uid, config, next_at) VALUES ($1, 's1', 'u1', $2, now())",
        *(TENANT, CONFIG),
    )
    [due] = await firings.due()

    await office.store.execute(TENANT, statement)
    planned = await office.store.fetch(TENANT, "SELECT * FROM schedules")
    await firings.decide(due)

    assert await office.store.fetch(TENANT, "SELECT * FROM firings") == []
    assert await office.store.fetch(TENANT, "SELECT * FROM schedules") == planned
