"""`wayline mcp approve` reaches every definition that waits, however many there are."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from typer.testing import CliRunner

from wayline.standalone.commands import mcp

WAITING = [
    {"tool": f"t{number}", "kind": "new", "sha256": f"{number:064x}", "differences": []} for number in range(300)
]


class Gateway:
    """Shows at most a hundred definitions, of some tools where they are named."""

    def __init__(self) -> None:
        self.approved: list[str] = []

    async def get(self, path: str, *, tool: list[str] | None) -> dict[str, Any]:
        changes = [change for change in WAITING if tool is None or change["tool"] in tool]
        return {"changes": changes[:100], "quarantined": len(WAITING)}

    async def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self.approved += body["sha256"]
        return {"quarantined": len(WAITING) - len(body["sha256"])}


@pytest.fixture
def gateway(monkeypatch) -> Gateway:
    held = Gateway()
    monkeypatch.setattr(mcp, "conversation", lambda work, *, as_json: asyncio.run(work(held)))
    return held


def test_a_tool_beyond_the_first_hundred_is_approved_by_name(gateway: Gateway):
    done = CliRunner().invoke(mcp.app, ["approve", "bank", "--tool", "t299", "--yes"])

    assert done.exit_code == 0, done.output
    assert gateway.approved == [f"{299:064x}"]
    assert "of 300 shown" not in done.stdout


def test_only_what_is_shown_is_approved(gateway: Gateway):
    done = CliRunner().invoke(mcp.app, ["approve", "bank", "--yes"])

    assert "100 of 300 shown" in done.stdout
    assert "100 approved; 200 still wait" in done.stdout
    assert len(gateway.approved) == 100
