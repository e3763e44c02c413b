"""Sessions that have gone quiet: those of one tenant do not stand in the way of another's."""

from __future__ import annotations

import pytest

from wayline.router.sessions import extraction_table
from wayline.router.sessions.extraction_table import ExtractionTable
from wayline.testkit.walks import cases

from .conftest import TENANT, Office

LOUD, CALM = "loud", "calm"
SESSION = """
INSERT INTO sessions (tenant, session_id, agent, turns, tail_job, created_at, updated_at)
VALUES ($1, $2, 'a', 1, $2, now() - $3 * interval '1 h', now() - $3 * interval '1 h')
"""
TURN = """
INSERT INTO session_turns (tenant, job_id, session_id, number, taken_at, ended_at, remember_for)
VALUES ($1, $2, $2, 1, now() - $3 * interval '1 h', now() - $3 * interval '1 h', 'ann')
"""
UNSENT = """
INSERT INTO extractions (tenant, job_id, user_id, decided_at, submission)
VALUES ($1, $2, 'ann', now() - $3 * interval '1 h', '{}')
"""


async def test_a_tenant_with_many_quiet_sessions_leaves_others_their_share(
    office: Office, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(extraction_table, "AT_ONCE", 3)
    for tenant, ages in ((LOUD, (9.0, 8.0, 7.0, 6.0)), (CALM, (1.0,))):
        for age_h in ages:
            for statement in (SESSION, TURN, UNSENT):
                await office.store.execute(tenant, statement, tenant, f"{tenant}-{age_h:g}", age_h)

    unsent, quiet = await ExtractionTable(office.store).unsent_and_quiet(quiet_s=60)

    assert [row["job_id"] for row in unsent] == ["loud-9", "calm-1", "loud-8"]
    assert [row["session_id"] for row in quiet] == ["loud-9", "calm-1", "loud-8"]


BUDGET = """
INSERT INTO budgets (tenant, name, limit_usd, period, timezone, user_id, hard, alerts)
VALUES ($1, 'b', 1, 'month', 'UTC', $2, true, '{}')
"""
WAITING = """
INSERT INTO reservations (tenant, job_id, reserved_usd, agent, user_id, waits_for, waits_usd, waits_since)
VALUES ($1, 'waits', 0, 'a', $2, 'b', 1, now())
"""


@pytest.mark.parametrize(("whose", "found"), cases([(None, []), ("ann", []), ("bob", ["s1"])]))
async def test_no_session_is_read_while_a_job_waits_for_its_budget(office: Office, whose: str | None, found: list[str]):
    for statement in (SESSION, TURN):
        await office.store.execute(TENANT, statement, TENANT, "s1", 1.0)
    for statement in (BUDGET, WAITING):
        await office.store.execute(TENANT, statement, TENANT, whose)

    _, quiet = await ExtractionTable(office.store).unsent_and_quiet(quiet_s=60)

    assert [row["session_id"] for row in quiet] == found
