"""Whose memories are to be summarised: noted with the end of a job, and no more once its user is forgotten."""

from __future__ import annotations

from wayline.router.forgetting.erasure_scope import ErasureScope
from wayline.router.forgetting.own_rows import OwnRows
from wayline.router.sessions.extraction_table import ExtractionTable

from .conftest import TENANT, Office, Offices


async def due(office: Office) -> list[str]:
    rows = await ExtractionTable(office.store).summaries_due(quiet_s=0, every_s=3_600)
    return [row["user_id"] for row in rows]


async def test_a_job_that_is_settled_again_names_no_forgotten_user(offices: Offices):
    office = await offices()
    table, rows = ExtractionTable(office.store), OwnRows(office.store)
    await office.admit("j1", user="ann")
    await office.settle("j1", "0.01")
    await table.want_summary(TENANT, "j1", "ann", "assistant")
    noted = await due(office)

    await rows.erase(ErasureScope(tenant=TENANT, user_id="ann"))
    await table.want_summary(TENANT, "j1", "ann", "assistant")

    assert (noted, await due(office)) == (["ann"], [])
