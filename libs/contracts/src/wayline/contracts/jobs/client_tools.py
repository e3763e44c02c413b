"""Tools that the caller of a job runs itself: what they are, and what they returned."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints

from wayline.contracts.base import Frozen
from wayline.contracts.tools import (
    BY_NAME,
    RECALL,
    RUN_AGENT,
    RUN_CODE,
    TOOL_SEARCH,
    USE_TOOL,
    Effect,
    ToolDefinition,
    tool_named,
)

CLIENT = "client:"
"""The server of these tools: no configured one can have a name with a colon."""
CLIENT_TOOLS_MAX = 64
CLIENT_TOOLS_MAX_BYTES = 64 * 1024
"""Of all definitions of one job, as JSON."""
DESCRIPTION_MAX_CHARS = 8_000
RESULT_MAX_CHARS = 1_000_000
RESULTS_MAX = CLIENT_TOOLS_MAX
"""Results in one message."""
KEY_MAX_CHARS = 200
RESERVED = frozenset({USE_TOOL, RECALL, RUN_CODE, RUN_AGENT, TOOL_SEARCH, "search_knowledge", *BY_NAME})
"""Names of tools that are ours wherever an agent has them."""


def _free(name: str) -> str:
    if tool_named(name) in RESERVED:
        raise ValueError(f"{name!r} is the name of a tool of this platform: choose another one")
    return name


class ClientTool(Frozen):
    """A tool that a job's caller runs: the job waits for what it returns."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$"), AfterValidator(_free)]
    description: str = Field(default="", max_length=DESCRIPTION_MAX_CHARS)
    input_schema: dict[str, Any] = Field(
        default_factory=dict, description="JSON Schema of its arguments, which are an object."
    )
    effect: Literal["read", "idempotent", "once"] = Field(
        default="once",
        description="`read` and `idempotent`: a call that has returned the same twice may be answered with that. A job "
        "that has read strangers' words may need an approval of calls of others, as its agent says.",
    )
    untrusted: bool = Field(
        default=False, description="Its results are the words of strangers: a job that has read one is tainted."
    )

    def definition(self) -> ToolDefinition:
        """Return the tool as the model is told of it."""
        return ToolDefinition(
            name=self.name,
            description=self.description,
            input_schema={"type": "object", "properties": {}, **self.input_schema},
            effect=Effect(self.effect),
            server=CLIENT,
            untrusted=self.untrusted,
        )


def _bounded(tools: tuple[ClientTool, ...]) -> tuple[ClientTool, ...]:
    names = [tool.name for tool in tools]
    if len(set(names)) < len(names):
        raise ValueError("two tools have the same name")
    if sum(len(tool.model_dump_json().encode()) for tool in tools) > CLIENT_TOOLS_MAX_BYTES:
        raise ValueError(f"the tools have more than {CLIENT_TOOLS_MAX_BYTES} bytes")
    return tools


ClientTools = Annotated[
    tuple[ClientTool, ...], Field(min_length=1, max_length=CLIENT_TOOLS_MAX), AfterValidator(_bounded)
]


class ToolResult(Frozen):
    """What a call of a caller's tool returned; a later one of the same call changes nothing."""

    key: str = Field(min_length=1, max_length=KEY_MAX_CHARS, description="The call's `key`, as the parked job says it.")
    content: str = Field(
        default="", max_length=RESULT_MAX_CHARS, description="What the model reads; of a failed call why it failed."
    )
    failed: bool = False

    @property
    def digest(self) -> str:
        """Return the hash by which the same result is known again."""
        return sha256(json.dumps([self.content, self.failed]).encode()).hexdigest()[:32]
