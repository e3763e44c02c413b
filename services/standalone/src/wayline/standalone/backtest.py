"""What another routing policy would have done with the jobs that ran: read their logs and decide them again."""

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
"""Of the newest jobs; a longer history is not read."""


def policy_of(said: str) -> Policy:
    """A policy by its name, or the bundled one with what a JSON or YAML file says otherwise. Raises ValueError."""
    known = named_policy(said)
    if known is not None:
        return known
    path = Path(said)
    if not path.is_file():
        raise ValueError(f"{said!r} is neither a policy (current, locked, all-standard, all-premium) nor a file")
    try:
        return policy_with(path.stem, _read(path))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ValueError(f"{path}: {where}: {first['msg']}") from None


def _read(path: Path) -> Mapping[str, Any]:
    import yaml

    try:
        said = json.loads(path.read_text()) if path.suffix == ".json" else yaml.safe_load(path.read_text())
    except (ValueError, yaml.YAMLError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    if not isinstance(said, dict):
        raise ValueError(f"{path} must hold names and values: tiers, moves, levels, weights …")
    return said


async def backtest(client: Client, policy: Policy, *, since: datetime) -> dict[str, Any]:
    """Read every job since then and decide it again; a job whose log has aged out is counted and left out."""
    decided, aged_out = [], 0
    async for log in _logs(client, since):
        # A log ages out from its beginning: what is left of it does not say how the job was routed.
        if log is None or not any(event.get("seq") == 1 for event in log):
            aged_out += 1
        elif (one := decide_again(log, policy)) is not None:
            decided.append(one)
    return backtest_summary(policy, decided) | {"aged_out": aged_out}


async def _logs(client: Client, since: datetime) -> AsyncIterator[list[dict[str, Any]] | None]:
    """Read the log of every job since then, newest first; None where it is not there any more."""
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
