"""Sessions that have gone quiet: those of one tenant do not stand in the way of another's."""

from __future__ import annotations

import pytest

from wayline.router.sessions import extraction_table
from wayline.router.sessions.extraction_table import ExtractionTable

from .conftest import Office

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
