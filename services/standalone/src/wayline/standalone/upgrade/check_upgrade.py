"""`wayline upgrade --check`: say what is left until the running installation is of this version, in order."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Any, Final, get_args

from wayline.chassis.running_version import running_version
from wayline.standalone.settings import Settings
from wayline.standalone.setup.installation import Installation, ServerAccess
from wayline.standalone.setup.migrate import find_servers
from wayline.standalone.setup.migrations import connected_admin
from wayline.standalone.upgrade.bus_changes import check_rights, check_streams
from wayline.standalone.upgrade.open_jobs import check_jobs
from wayline.standalone.upgrade.pending_migrations import check_database
from wayline.standalone.upgrade.replicas import ORDER, Replica, find_replicas, restarts
from wayline.standalone.upgrade.upgrade_step import StepKind, UpgradeStep

CONNECT_WITHIN_S: Final = 10.0
TITLES: Final[dict[StepKind, str]] = {
    "blocked": "In the way",
    "unknown": "Not known",
    "note": "To be known",
    "rights": "First, rights on the bus",
    "migrate": "Then the database",
    "streams": "and the streams",
    "restart": "Then restart, one after the other",
}


class UpgradeOutcome(StrEnum):
    """What a check has come to."""

    LEFT = "left"
    UNKNOWN = "unknown"
    """Nothing that was looked at is left, and something could not be looked at."""
    DONE = "done"


async def check(settings: Settings, *, as_json: bool = False) -> UpgradeOutcome:
    """Print every step, and return what they come to. Raises NoServers and Unavailable."""
    installation = Installation(settings.data_dir.absolute())
    access = find_servers(settings, installation)
    steps, replicas = await find_steps(settings, installation, access)
    outcome = outcome_of(steps)
    if as_json:
        print(json.dumps(_as_value(steps, replicas, outcome), indent=2))
    else:
        _show(steps, replicas)
    return outcome


def outcome_of(steps: list[UpgradeStep]) -> UpgradeOutcome:
    """Return what the steps come to: what was not looked at may be left to do."""
    kinds = {step.kind for step in steps} - {"note"}
    if kinds - {"unknown"}:
        return UpgradeOutcome.LEFT
    return UpgradeOutcome.UNKNOWN if kinds else UpgradeOutcome.DONE


async def find_steps(
    settings: Settings, installation: Installation, access: ServerAccess
) -> tuple[list[UpgradeStep], list[Replica]]:
    """Return what is left to do in its order, and the services that run."""
    steps = list(check_rights(settings, installation, access))
    async with connected_admin(access, wait_s=CONNECT_WITHIN_S) as bus:
        steps += [step async for step in check_database(access)]
        steps += [step async for step in check_streams(bus.js, settings.limits)]
        steps += [step async for step in check_jobs(bus, access)]
    found = await find_replicas(access, settings, installation)
    if found.unseen:
        steps.append(UpgradeStep("unknown", found.unseen, found.todo))
    steps += restarts(found.replicas, running_version())
    order = get_args(StepKind)
    return sorted(steps, key=lambda step: order.index(step.kind)), found.replicas


def _as_value(steps: list[UpgradeStep], replicas: list[Replica], outcome: UpgradeOutcome) -> dict[str, Any]:
    here = running_version()
    return {
        "version": here.version,
        "commit": here.commit or None,
        "done": outcome is UpgradeOutcome.DONE,
        "outcome": outcome,
        "blocked": any(step.kind == "blocked" for step in steps),
        "steps": [step.as_dict() for step in steps],
        "order": [name.replace("_", "-") for name in ORDER],
        "replicas": [{"service": one.service, "version": one.version, "where": one.where} for one in replicas],
    }


def _show(steps: list[UpgradeStep], replicas: list[Replica]) -> None:
    from rich.console import Console
    from rich.markup import escape

    screen, last = Console(highlight=False), ""
    for step in steps:
        if step.kind != last:
            screen.print(f"[bold]{TITLES[step.kind]}[/bold]")
            last = step.kind
        screen.print(f"  {escape(step.text)}\n      {escape(step.todo)}", soft_wrap=True)
    running = len(replicas)
    here = f"{running} running service{'s' if running != 1 else ''}, this is {running_version()}"
    done = outcome_of(steps) is UpgradeOutcome.DONE
    screen.print(f"nothing left to do: {here}" if done else f"\n{here}", soft_wrap=True)
