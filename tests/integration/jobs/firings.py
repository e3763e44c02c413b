"""Schedules whose moments come when the test says so."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from wayline.contracts.schedules import (
    Firing,
    GetSchedule,
    PutSchedule,
    Schedule,
    ScheduleConfig,
)
from wayline.router.settings import Settings as RouterSettings
from wayline.testkit import Platform, until

JOB = {"agent": "assistant", "input": "What is new?"}
OFTEN = RouterSettings(schedules_every_s=0.02, schedules_max=3)
HOURLY = f"{(datetime.now(UTC).minute + 30) % 60} * * * *"
"""Of itself it never fires while a test runs."""


async def put(platform: Platform, name: str, *, job: Any = None, **fields: Any) -> Schedule:
    config = ScheduleConfig.model_validate({"job": {**JOB, **(job or {})}, **fields})
    return await platform.bus.ask(PutSchedule(tenant=platform.tenant, name=name, config=config), Schedule)


async def get(platform: Platform, name: str) -> Schedule:
    return await platform.bus.ask(GetSchedule(tenant=platform.tenant, name=name), Schedule)


def soon(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()


async def make_due(platform: Platform, name: str, *, ago: str = "0 s") -> None:
    """Move a schedule's plan, as if its moment had come so long ago."""
    async with platform.superuser() as conn:
        await conn.execute(
            "UPDATE router.schedules SET next_at = now() - $1::text::interval WHERE tenant = $2 AND name = $3",
            ago,
            platform.tenant,
            name,
        )


async def fired(platform: Platform, name: str, *, times: int = 1) -> list[Firing]:
    """Wait until a schedule has decided so many moments, and return them, newest first."""

    async def enough() -> list[Firing]:
        firings = (await get(platform, name)).firings
        return [*firings] if len(firings) >= times else []

    return await until(enough, why=f"{name} has fired")
