"""Programs of tests, and the tools that they call."""

from __future__ import annotations

from datetime import UTC, datetime
from textwrap import dedent
from typing import Any

from wayline.contracts.tools import ToolDefinition
from wayline.sandbox import Answer, Program, Returned, Sandbox, Suspended, Turn, make_stubs

_TEXT = {"type": "string"}
STUBS = make_stubs(
    [
        ToolDefinition(
            name="fetch",
            description="Fetch a page.",
            input_schema={
                "type": "object",
                "properties": {"url": _TEXT, "part": {"enum": ["head", "body"]}},
                "required": ["url"],
            },
        ),
        ToolDefinition(
            name="crm-save",
            description="Save a record.",
            input_schema={"type": "object", "properties": {"record": {"type": "object"}}, "required": ["record"]},
        ),
    ]
)


def program(code: str) -> Program:
    return Program(dedent(code), STUBS, datetime(2026, 11, 23, 12, tzinfo=UTC), "acme/job/1")


def asked(turn: Turn) -> list[tuple[int, str, dict[str, Any]]]:
    """Return the calls for which a program waits."""
    assert isinstance(turn, Suspended), turn
    return [(call.number, call.tool, call.arguments) for call in turn.pending]


async def run(sandbox: Sandbox, code: str, answers: dict[int, Answer] | None = None) -> Turn:
    """Run a program to its end; calls without an answer of their own return their number."""
    running = program(code)
    turn = await sandbox.start(running)
    while isinstance(turn, Suspended):
        given = [(call.number, (answers or {}).get(call.number, Returned(call.number))) for call in turn.pending]
        turn = await sandbox.resume(running, turn, given)
    return turn
