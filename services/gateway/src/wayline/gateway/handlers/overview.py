"""Who asks, and what goes on for its tenant."""

from __future__ import annotations

import asyncio
import platform
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from typing import Annotated

from fastapi import APIRouter, Depends

from wayline.chassis.running_version import running_version
from wayline.contracts.budgets import BudgetList, ListBudgets
from wayline.contracts.overview import GetJobsOverview, JobsOverview
from wayline.gateway.adapters.dead_letters import DeadLetters
from wayline.gateway.handlers.shared.dependencies import GatewayDependency, Reader, identify
from wayline.gateway.handlers.shared.own_jobs import require_all_users
from wayline.gateway.keys import SCOPES, Caller
from wayline.gateway.openapi import fails
from wayline.gateway.shapes.overview import Me, Overview
from wayline.gateway.strict_json import StrictRoute

router = APIRouter(prefix="/v1", tags=["overview"], route_class=StrictRoute)

LIBRARIES = ("nats-py", "asyncpg")
DECISIONS = {"approval", "needs_decision"}
"""What a job waits for that waits for a person."""


@cache
def _library_versions() -> tuple[tuple[str, str], ...]:
    """Return the versions of our main libraries; each is read from a file, which took a third of an answer."""
    return tuple((name, version(name)) for name in LIBRARIES)


@router.get("/me", responses=fails())
async def get_me(gateway: GatewayDependency, caller: Annotated[Caller, Depends(identify)]) -> Me:
    """Return who the caller is and what it may do; any key may ask."""
    key = await gateway.keys.get(caller.key_id) if caller.key_id else None
    running = running_version()
    places = {"console": gateway.settings.console_url, "grafana": gateway.settings.grafana_url}
    return Me(
        tenant=caller.tenant,
        key_id=caller.key_id or None,
        name=caller.name,
        scopes=tuple(scope for scope in SCOPES if scope in caller.scopes),
        user_id=caller.user_id,
        expires_at=key.expires_at if key else None,
        open=caller.is_open,
        version=running.version,
        commit=running.commit or None,
        python=platform.python_version(),
        libraries=dict(_library_versions()),
        links={name: str(url).rstrip("/") for name, url in places.items() if url is not None},
    )


@router.get("/overview", responses=fails())
async def get_overview(gateway: GatewayDependency, caller: Reader) -> Overview:
    """Return what waits and since when, what was spent against what was predicted, and what needs a person."""
    require_all_users(caller, "an overview is")
    letters = DeadLetters(gateway.bus, gateway.store, caller.tenant) if "admin" in caller.scopes else None
    jobs, budgets, dead = await asyncio.gather(
        gateway.bus.ask(GetJobsOverview(tenant=caller.tenant), JobsOverview),
        gateway.bus.ask(ListBudgets(tenant=caller.tenant), BudgetList),
        letters.count() if letters else asyncio.sleep(0),
    )
    waiting = [kind for kind in jobs.open if kind.waiting_for in DECISIONS]
    return Overview(
        at=datetime.now(UTC),
        open=jobs.open,
        decisions=sum(kind.jobs for kind in waiting),
        decisions_oldest_at=min((kind.oldest_at for kind in waiting), default=None),
        spent=jobs.spent,
        budgets=tuple(budget for budget in budgets.budgets if budget.raised),
        dead_letters=dead,
    )
