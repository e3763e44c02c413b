"""Which open jobs this version could not go on with."""

from __future__ import annotations

from typing import Any, Final

from wayline.chassis import Bus
from wayline.contracts.events import Event, Unknown
from wayline.journal import JobLog
from wayline.standalone.setup.installation import ServerAccess
from wayline.standalone.setup.migrations import sql
from wayline.standalone.upgrade.upgrade_step import UpgradeStep, UpgradeSteps
from wayline.store.connecting import connect_or_explain

JOBS_MAX: Final = 500
"""How many open jobs are read, those that wait for longest first."""
TODO: Final = "let a replica of the version that wrote it end it, or keep one running"


async def check_jobs(bus: Bus, access: ServerAccess) -> UpgradeSteps:
    """Yield the open jobs whose logs hold what this version does not know."""
    conn: Any = await connect_or_explain(access.admin_dsn)
    try:
        await conn.execute(sql.see_all_tenants)
        jobs = await conn.fetch(sql.open_jobs, JOBS_MAX) if await conn.fetchval(sql.has_jobs) else []
    finally:
        await conn.close()
    for job in jobs:
        events = [event async for event in JobLog(bus, job["tenant"], job["job_id"]).read()]
        if what := unreadable(events):
            yield UpgradeStep("blocked", f"job {job['tenant']}/{job['job_id']} has {what}", TODO)
    if len(jobs) == JOBS_MAX:
        yield UpgradeStep(
            "unknown", f"of the open jobs the {JOBS_MAX} oldest were read", "the others are read when they go on"
        )


def unreadable(events: list[Event]) -> str:
    """Return what of a log this version cannot go on from; empty: nothing."""
    strange = sorted({event.type for event in events if isinstance(event, Unknown)})
    return f"events of a newer version: {', '.join(strange)}" if strange else ""
