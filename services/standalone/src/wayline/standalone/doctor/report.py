"""`wayline doctor`: report what is wrong and what to do."""

from __future__ import annotations

import json
from functools import partial

from wayline.standalone.doctor import bus, database, gateway, machine, models, tools
from wayline.standalone.doctor.finding import Check, Finding, examine
from wayline.standalone.settings import Settings
from wayline.standalone.setup.installation import Installation

MARKS = {
    "ok": "[green]ok[/green]     ",
    "note": "note   ",
    "warning": "[yellow]warning[/yellow]",
    "problem": "[red]PROBLEM[/red]",
}


async def report(settings: Settings, *, as_json: bool = False) -> bool:
    """Print every finding, and return whether there is no problem."""
    findings: list[Finding] = []
    for about, check in checks(settings, Installation(settings.data_dir.absolute())).items():
        async for finding in examine(about, check):
            findings.append(finding)
            if not as_json:
                _show(finding)
    stopped = any(finding.text == gateway.NOT_RUNNING for finding in findings)
    healthy = not any(finding.state == "problem" for finding in findings)
    if as_json:
        print(
            json.dumps(
                {"healthy": healthy, "running": not stopped, "findings": [finding.as_dict() for finding in findings]},
                indent=2,
            )
        )
    else:
        problems = sum(finding.state == "problem" for finding in findings)
        found = f"{problems} problem{'s' if problems != 1 else ''}" if problems else "no problem found"
        print(f"\n{found}{'; Wayline is not running, `wayline up` starts it' if stopped else ''}")
    return healthy


def checks(settings: Settings, installation: Installation) -> dict[str, Check]:
    """Return every check, in the order in which they depend on each other."""
    return {
        "python": machine.python,
        "settings": machine.service_settings,
        "programs": partial(machine.programs, settings),
        "text recognition": machine.text_recognition,
        "data directory": partial(machine.data_directory, installation),
        "disk": partial(machine.disk, installation),
        "ports": partial(machine.ports, settings, installation),
        "bus": partial(bus.examine_bus, settings, installation),
        "database": partial(database.examine_database, settings, installation),
        "gateway": partial(gateway.examine_gateway, settings, installation),
        "tenants' programs": tools.programs_of_tenants,
        "tools": partial(tools.examine_tools, settings, installation),
        "models": partial(models.examine_models, settings, installation),
    }


def _show(finding: Finding) -> None:
    from rich.console import Console
    from rich.markup import escape

    screen = Console(highlight=False)
    screen.print(f"{MARKS[finding.state]}  [bold]{finding.about:<14}[/bold]  {escape(finding.text)}", soft_wrap=True)
    if finding.todo:
        screen.print(f"{'':25}{escape(finding.todo)}", soft_wrap=True)
