"""The cases of the hostile tenant: what its servers list and answer, and what must come of a call."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from wayline.chassis import Bus
from wayline.contracts.server_config import ServerConfig
from wayline.contracts.strict_json import NotStrictJson, require_bounded
from wayline.contracts.tools import Effect

from .attack import outcome
from .logins import LOGINS
from .names import NAMES
from .programs import PROGRAMS
from .raw_server import HANG, RpcError, raw_server
from .schemas import CASES as SCHEMAS
from .schemas import HostileSchema
from .transfers import TRANSFERS

TIMEOUT_S = 3.0
"""Of the hostile tool."""
BYTES_MAX = 200_000
"""Of the arguments of a case that go over the bus."""
OUTCOMES = {
    "fits": ("success",),
    "refused": ("invalid_arguments",),
    "over budget": ("invalid_arguments",),
    "unusable": ("left out", "away", "invalid_arguments", "success"),
}
"""By what a schema does, the outcomes of a call. One that is fitted first may be usable, a too deep one is away."""


class Case(Protocol):
    """Something that a hostile tenant does."""

    @property
    def name(self) -> str:
        """Say in a few words what it is."""
        ...

    @property
    def outcomes(self) -> Sequence[str]:
        """Name the outcomes that it may have."""
        ...

    async def run(self, bus: Bus, tenant: str, *, job: str) -> str:
        """Do it, and return what came of it."""
        ...


@dataclass(frozen=True)
class HostileCase:
    """One server of the hostile tenant with one tool that is called once."""

    name: str
    outcomes: Sequence[str]
    """`success`, an error's code, `left out`, or `away`."""
    tools: Any = field(default_factory=lambda: [{"name": "act", "inputSchema": {"type": "object"}}])
    """The list of tools, or the whole result of `tools/list`."""
    arguments: dict[str, Any] = field(default_factory=dict)
    result: Any = field(default_factory=lambda: {"content": [{"type": "text", "text": "done"}]})
    """Of a call: a result, the bytes of the whole answer, an RpcError, a packed body, bytes of the wire, or HANG."""
    effect: Effect = Effect.READ

    async def run(self, bus: Bus, tenant: str, *, job: str) -> str:
        """Let the tenant call the tool, and return what came of it."""
        async with raw_server(self.answer) as url:
            config = ServerConfig(url=url, effects={"act": self.effect}, timeout_s=TIMEOUT_S)
            return await outcome(bus, tenant, config, self.arguments, job=job)

    def answer(self, method: str, params: dict[str, Any]) -> Any:
        """Return what the server answers."""
        if method == "tools/list":
            return {"tools": self.tools} if isinstance(self.tools, list) else self.tools
        if method == "tools/call":
            if isinstance(self.result, RpcError):
                raise self.result
            return self.result
        return {}


def of_schema(case: HostileSchema) -> HostileCase:
    tools = [{"name": "act", "inputSchema": case.schema}]
    return HostileCase(f"schema: {case.name}", OUTCOMES[case.outcome], tools=tools, arguments=case.value)


def can_be_sent(arguments: Any) -> bool:
    """Return whether arguments pass the doors before the registry."""
    try:
        require_bounded(arguments)
    except NotStrictJson:
        return False
    return len(json.dumps(arguments)) <= BYTES_MAX


def text(content: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": content}]}


def body(result: str) -> bytes:
    """Return a whole answer around the JSON of a result."""
    return f'{{"jsonrpc":"2.0","id":$ID,"result":{result}}}'.encode()


GOOD = {"name": "act", "inputSchema": {"type": "object"}}
DONE = ("success", "tool_failed", "unavailable", "refused")
CUT = ("tool_failed", "unavailable", "timeout")
"""Of an answer that is not read to its end."""
ANSWERS = [
    HostileCase("list: a cursor that repeats", ("success",), tools={"tools": [GOOD], "nextCursor": "again"}),
    HostileCase("list: no list", ("away",), tools={"tools": "all of them"}),
    HostileCase("list: junk beside a tool", ("success",), tools=[5, None, {}, {"name": 7}, GOOD]),
    HostileCase("list: a tool without a schema", ("success",), tools=[{"name": "act"}]),
    HostileCase("list: a description that is a number", ("success",), tools=[{**GOOD, "description": 5}]),
    HostileCase("list: annotations that are a text", ("success",), tools=[{**GOOD, "annotations": "safe"}]),
    HostileCase("list: the same tool a thousand times", ("success",), tools=[GOOD] * 1_000),
    HostileCase("list: 1,500 tools", ("success",), tools=[{**GOOD, "name": f"t{n}"} for n in range(1_500)] + [GOOD]),
    HostileCase("list: 2,001 tools", ("away",), tools=[{**GOOD, "name": f"t{n}"} for n in range(2_001)]),
    HostileCase("list: a name of 5,000 letters", ("success",), tools=[{**GOOD, "name": "a" * 5_000}, GOOD]),
    HostileCase("list: a description of a megabyte", ("success",), tools=[{**GOOD, "description": "x" * 1_000_000}]),
    HostileCase("answer: nothing, for ever", ("timeout", "unavailable"), result=HANG),
    HostileCase("answer: no JSON", DONE, result=b"<html>busy</html>"),
    HostileCase("answer: half of the JSON", DONE, result=b'{"jsonrpc":"2.0","id":$ID,"result":{"content":['),
    HostileCase(
        "answer: nested 150 deep", DONE, result={**text("x"), "structuredContent": json.loads("[" * 150 + "]" * 150)}
    ),
    HostileCase("answer: nested 100,000 deep", DONE, result=body("[" * 100_000 + "]" * 100_000)),
    HostileCase("answer: four megabytes of text", ("success",), result=text("x" * 4_000_000)),
    HostileCase("answer: ten thousand parts", DONE, result={"content": [{"type": "text", "text": "x"}] * 10_000}),
    HostileCase("answer: half of a character", DONE, result=body('{"content":[{"type":"text","text":"\\\\ud83d"}]}')),
    HostileCase(
        "answer: a number of 4,000 digits",
        DONE,
        result=body('{"content":[],"structuredContent":{"n":' + "9" * 4_000 + "}}"),
    ),
    HostileCase("answer: an error of its own", ("tool_failed", "unavailable"), result=RpcError(-32603, "no customer")),
    HostileCase(
        "answer: an error that forges ours", ("tool_failed", "unavailable"), result=RpcError(-32050, "not begun")
    ),
]
CASES: list[Case] = [
    *(of_schema(case) for case in SCHEMAS if can_be_sent(case.value)),
    *ANSWERS,
    *(HostileCase(f"transfer: {name}", CUT, result=result) for name, result in TRANSFERS.items()),
    *NAMES,
    *LOGINS,
    *PROGRAMS,
]
SLICE = (
    "schema: nested repeats",
    "schema: doubling by oneOf",
    "schema: patterns by names",
    "schema: itself without end",
    "list: a cursor that repeats",
    "list: junk beside a tool",
    "list: annotations that are a text",
    "answer: nested 100,000 deep",
    "answer: half of the JSON",
    "transfer: events without end",
    "transfer: a length of 5,000 digits",
    "login: token, headers without end",
)
"""The cases of the ordinary suite."""
