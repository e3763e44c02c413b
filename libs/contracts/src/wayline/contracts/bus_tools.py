"""Tools over the bus: how a tenant's own service announces its tools, and how one of them is called."""

from __future__ import annotations

from datetime import datetime
from hashlib import sha256
from typing import Any, Self

import orjson
from pydantic import Field, model_validator

from wayline.contracts.base import Frozen, Message, Request, Usd
from wayline.contracts.server_config import ServerName
from wayline.contracts.tools import Ask, Effect

TOOLS_MAX = 100
"""Tools of one service."""
DESCRIPTION_MAX_CHARS = 8_000
SCHEMA_MAX_BYTES = 32 * 1024
INSTRUCTIONS_MAX_CHARS = 4_000
TIMEOUT_MAX_S = 600.0
BODY_MAX = 768 * 1024
"""Bytes of a call, and of its result: the bus takes a megabyte, and clients cannot move fields out of a message."""

ANNOUNCE_EVERY_S = 3.0
ANNOUNCED_FOR_S = 10.0
"""How long an announcement counts: three may be lost."""
HEARTBEAT_EVERY_S = 2.0
SILENT_MAX_S = 15.0
"""How long a call may bring neither a heartbeat nor its result before it counts as cut."""
OUTCOME_UNKNOWN = "outcome_unknown"
"""The code of the Problem with which a service says that it does not know what its tool did."""


class BusTool(Frozen):
    """A tool as its service announces it."""

    name: str = Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")
    description: str = Field(default="", max_length=DESCRIPTION_MAX_CHARS)
    input_schema: dict[str, Any] = Field(default_factory=lambda: {"type": "object"})
    effect: Effect = Effect.ONCE
    timeout_s: float = Field(default=60, gt=0, le=TIMEOUT_MAX_S)
    in_order: bool = Field(default=False, description="Never run beside another call of the same step.")
    ask: Ask = Field(default="never", description="When a person must approve a call, whatever the agent says.")
    untrusted: bool = Field(default=False, description="Its results are the words of strangers.")
    output_schema: dict[str, Any] | None = Field(
        default=None, description="What the structured content of its results looks like, for MCP clients."
    )

    @property
    def schema_sha256(self) -> str:
        """Return the hash of the schema by which a call's arguments are checked."""
        return sha256(orjson.dumps(self.input_schema, option=orjson.OPT_SORT_KEYS, default=str)).hexdigest()

    @model_validator(mode="after")
    def _schema_is_bounded(self) -> Self:
        for name, schema in (("input_schema", self.input_schema), ("output_schema", self.output_schema)):
            size = len(orjson.dumps(schema, default=str))
            if size > SCHEMA_MAX_BYTES:
                raise ValueError(f"{name} takes {size} bytes; at most {SCHEMA_MAX_BYTES} are kept")
        return self


class Announced(Frozen):
    """What the registry made of an announcement."""

    left_out: dict[str, str] = Field(default_factory=dict, description="Tools that cannot be offered, and why.")
    held: dict[str, str] = Field(
        default_factory=dict, description="Tools that wait for an approval, and why; the empty name: the instructions."
    )


class AnnounceTools(Request, subject="tools.announce.{tenant}.{service}", replies=Announced):
    """Offer the tools of a service, for the next seconds; every replica of the registry hears it."""

    from_clients = True

    service: ServerName = Field(default="", exclude=True)
    instance: str = Field(min_length=1, max_length=64, description="Of the processes that share the service's calls.")
    started_at: datetime = Field(description="Of this instance: the tools of the newest one count.")
    leaving: bool = Field(default=False, description="This instance takes no more calls.")
    service_version: str = Field(default="", max_length=64, description="Of the service, as it calls it.")
    instructions: str = Field(default="", max_length=INSTRUCTIONS_MAX_CHARS)
    tools: tuple[BusTool, ...] = Field(default=(), max_length=TOOLS_MAX)

    @classmethod
    def owner_of(cls, body: bytes, subject: str) -> str:
        """Return an owner that nothing has: no field of an announcement can be in the object store."""
        return "~"


class WantTools(Message, subject="tools.wanted"):
    """Have every service on the bus announce its tools now: a registry has just started."""


class InvokeResult(Frozen):
    """What a tool answered."""

    text: str = ""
    structured: dict[str, Any] | None = None
    cost_usd: Usd | None = Field(default=None, description="What the tool itself charged; None: it is free.")
    error: str | None = Field(default=None, description="Why the tool failed, for the model.")


class InvokeTool(Request, subject="tools.invoke.{tenant}.{service}", replies=InvokeResult):
    """Run a tool of a service, in one of its instances.

    While it runs, messages with the header `Wayline-Heartbeat` come on the reply subject: empty, or a `ToolProgress`. A
    Problem with status 503 means that this instance has not begun the call and never will; it is sent again for a
    moment, and another instance may take it.
    """

    body_max = BODY_MAX

    service: ServerName = Field(default="", exclude=True)
    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    key: str = Field(description="The same at each repeat of one call.")
    job_id: str = ""
    step: int = 0
    call: str = ""
    user_id: str | None = None
    timeout_s: float = Field(gt=0, description="How long the caller waits for the result.")
    deadline: datetime = Field(description="Past it the tool must not begin.")
    schema_sha256: str = Field(
        default="",
        description="Of the tool's input_schema that the arguments fit (sorted keys, no white space); an instance that "
        "offers the tool with another one does not begin the call. Empty: not said.",
    )
    reconcile: bool = Field(default=False, description="Only say what became of the key; do nothing.")


class StopInvocation(Message, subject="tools.stop.{tenant}.{service}"):
    """Tell the instances of a service that a call was cancelled: its tool may end early, its result counts."""

    service: ServerName = Field(default="", exclude=True)
    key: str = Field(description="Of the call, as in `InvokeTool`.")
