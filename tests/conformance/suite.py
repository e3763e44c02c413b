"""The official conformance suite as `make mcp-conformance` installs it: run it, and read what it reports."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from ..npm import installed, node

WITHIN_S: Final = 900
CLIENTS: Final = 2
EXPECTED: Final = Path(__file__).with_name("expected_failures.yaml")

_SCENARIO = re.compile(r"^[✓✗~⚠?!] ([\w/.-]+): (\d+) passed, (\d+) failed", re.MULTILINE)
_RESULT = re.compile(r"^Passed: (\d+)/\d+, (\d+) failed", re.MULTILINE)
_NOT_SCORED = re.compile(r"^ +[✓✗~⚠?!] ([\w/.-]+) \(([\w-]+)\)", re.MULTILINE)


@dataclass(frozen=True)
class Checks:
    """How many checks of a scenario passed and failed."""

    passed: int
    failed: int


@dataclass(frozen=True)
class Report:
    """What a run of the suite says, by scenario."""

    required: dict[str, Checks]
    """What a revision of the protocol requires."""
    others: dict[str, Checks]
    """Extensions, and scenarios that are younger than the revision."""
    told: str

    @property
    def failed(self) -> set[str]:
        return {name for name, checks in self.required.items() if checks.failed}

    @classmethod
    def of(cls, told: str) -> Report:
        """Read the suite's summary."""
        every = {name: Checks(int(passed), int(failed)) for name, passed, failed in _SCENARIO.findall(told)}
        not_scored = {name for name, _ in _NOT_SCORED.findall(told)}
        return cls(
            required={name: checks for name, checks in every.items() if name not in not_scored},
            others={name: checks for name, checks in every.items() if name in not_scored},
            told=told,
        )


def package() -> Path:
    """Return where the suite is."""
    return installed("conformance/node_modules/@modelcontextprotocol/conformance")


async def check_server(url: str, revision: str) -> Report:
    """Run all scenarios that a revision of the protocol requires of a server."""
    return Report.of(await _run("server", "--url", url, "--requirements", revision))


async def check_client(command: str, revision: str) -> Report:
    """Run all scenarios that a revision of the protocol requires of a client, two at a time.

    The suite itself would start them all at once: as many Pythons as there are scenarios.
    """
    required = yaml.safe_load((package() / "requirements" / f"{revision}.yaml").read_text())["client"]
    at_once, told = asyncio.Semaphore(CLIENTS), dict[str, str]()

    async def run(scenario: str) -> None:
        async with at_once:
            told[scenario] = await _run(
                "client", "--command", command, "--scenario", scenario, "--spec-version", revision
            )

    await asyncio.gather(*map(run, required))
    ran = {name: _checks(name, told[name]) for name in required}
    return Report(ran, {}, "\n".join(text for name, text in told.items() if ran[name].failed))


def _checks(scenario: str, told: str) -> Checks:
    found = _RESULT.search(told)
    if found is None:
        raise AssertionError(f"the suite says nothing of {scenario}: {told}")
    return Checks(int(found[1]), int(found[2]))


async def _run(*arguments: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *(node(), str(package() / "dist/index.js"), *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(WITHIN_S):
        told, _ = await process.communicate()
    return told.decode()


def expected_failures(leg: str, revision: str) -> dict[str, str]:
    """Return the scenarios that are not passed by design, with the reasons."""
    listed: dict[str, Any] = yaml.safe_load(EXPECTED.read_text())
    return listed[f"{leg} {revision}"]
