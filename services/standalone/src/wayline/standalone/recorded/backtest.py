"""Backtest a routing policy: read the logs of past jobs and decide them again."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from wayline.client import ApiError
from wayline.routing import Policy, backtest_summary, decide_again, named_policy, policy_with

if TYPE_CHECKING:
    from wayline.client import Client

PAGE = 50
GONE = 404
JOBS_MAX = 10_000
"""The most jobs that are read, the newest first."""


def load_policy(source: str) -> Policy:
    """Return a policy by its name, or the bundled one with the overrides of a JSON or YAML file. Raises ValueError."""
    known = named_policy(source)
    if known is not None:
        return known
    path = Path(source)
    if not path.is_file():
        raise ValueError(f"{source!r} is neither a policy (current, locked, all-standard, all-premium) nor a file")
    try:
        return policy_with(path.stem, _read(path))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ValueError(f"{path}: {where}: {first['msg']}") from None


def _read(path: Path) -> Mapping[str, Any]:
    import yaml

    try:
        overrides = json.loads(path.read_text()) if path.suffix == ".json" else yaml.safe_load(path.read_text())
    except (ValueError, yaml.YAMLError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    if not isinstance(overrides, dict):
        raise ValueError(f"{path} must hold names and values: tiers, moves, levels, weights …")
    return overrides


async def backtest(client: Client, policy: Policy, *, since: datetime) -> dict[str, Any]:
    """Read every job since then and decide it again; jobs whose log has expired are only counted."""
    decided, aged_out = [], 0
    async for log in _logs(client, since):
        # A log expires from its beginning, and the beginning holds the routing decision.
        if log is None or not any(event.get("seq") == 1 for event in log):
            aged_out += 1
        elif (one := decide_again(log, policy)) is not None:
            decided.append(one)
    return backtest_summary(policy, decided) | {"aged_out": aged_out}


async def _logs(client: Client, since: datetime) -> AsyncIterator[list[dict[str, Any]] | None]:
    """Yield the log of every job since then, newest first; None where it has expired."""
    seen = 0
    async for page in client.pages("/v1/jobs", limit=PAGE):
        recent = [job for job in page["jobs"] if datetime.fromisoformat(job["created_at"]) >= since]
        for job in recent:
            yield await _log(client, job["job_id"])
        seen += len(recent)
        if len(recent) < len(page["jobs"]) or seen >= JOBS_MAX:
            return


async def _log(client: Client, job_id: str) -> list[dict[str, Any]] | None:
    try:
        return await client.log(job_id)
    except ApiError as error:
        # Logs are kept for 30 days, the list of jobs for longer.
        if error.status == GONE:
            return None
        raise
