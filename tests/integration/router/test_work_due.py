"""One statement tells which rooms of the router have work that no message tells of."""

from __future__ import annotations

import pytest

from .conftest import TENANT, Office

WORK = {
    "budgets": [
        "INSERT INTO budgets (tenant, name, limit_usd, period, timezone, hard, alerts)"
        " VALUES ('default', 'b', 1, 'month', 'UTC', true, '{}')",
        "INSERT INTO reservations (tenant, job_id, reserved_usd, agent, waits_for, waits_usd, waits_since)"
        " VALUES ('default', 'j1', 0, 'assistant', 'b', 1, now())",
        # A budget for each job has no use to show.
        "WITH budget AS (INSERT INTO budgets (tenant, name, limit_usd, period, timezone, hard, alerts)"
        " VALUES ('default', 'each', 1, 'job', 'UTC', true, '{}'))"
        " INSERT INTO budget_alerts (tenant, budget, starts_at, threshold, at, used_usd, limit_usd)"
        " VALUES ('default', 'each', now(), 0.8, now(), 1, 1)",
    ],
    "forgetting": [
        "INSERT INTO forgets (tenant, forget_id, what, job_id, name_sha256, asked_by)"
        " VALUES ('default', 'f1', 'job', 'j1', 'x', 'somebody')",
    ],
    "permits": [
        "INSERT INTO run_permits (tenant, job_id, state, lane, agent)"
        " VALUES ('default', 'j1', 'running', 'interactive', 'assistant')",
    ],
    "schedules": [
        "INSERT INTO schedules (tenant, name, uid, config, next_at) VALUES ('default', 's1', 'u1', '{}', now())",
        "INSERT INTO firings (tenant, job_id, schedule, uid, version, due_at, decided_at, cause, outcome, submission)"
        " VALUES ('default', 'j1', 's1', 'u1', 1, now(), now(), 'due', 'fired', '{}')",
    ],
}
NO_WORK = [
    "INSERT INTO budgets (tenant, name, limit_usd, period, timezone, hard, alerts)"
    " VALUES ('default', 'each', 1, 'job', 'UTC', true, '{}')",
    "INSERT INTO reservations (tenant, job_id, reserved_usd, agent) VALUES ('default', 'j2', 0, 'assistant')",
    "INSERT INTO forgets (tenant, forget_id, what, job_id, name_sha256, asked_by, look_at)"
    " VALUES ('default', 'f2', 'job', 'j1', 'y', 'somebody', 'infinity')",
    "INSERT INTO schedules (tenant, name, uid, config, next_at)"
    " VALUES ('default', 's2', 'u2', '{}', now() + interval '1 h')",
    "INSERT INTO firings (tenant, job_id, schedule, uid, version, due_at, decided_at, cause, outcome)"
    " VALUES ('default', 'j2', 's2', 'u2', 1, now(), now(), 'due', 'fired')",
]


async def due(office: Office) -> list[str]:
    return await office.store.true_columns(office.store.sql.work_due)


async def test_rooms_whose_work_is_not_due_yet_or_done_have_none(office: Office):
    for statement in NO_WORK:
        await office.store.execute(TENANT, statement)

    assert await due(office) == []


@pytest.mark.parametrize(
    ("room", "statement"), [(room, statement) for room, statements in WORK.items() for statement in statements]
)
async def test_a_row_that_is_work_for_a_room_names_it(office: Office, room: str, statement: str):
    await office.store.execute(TENANT, statement)

    assert await due(office) == [room]
