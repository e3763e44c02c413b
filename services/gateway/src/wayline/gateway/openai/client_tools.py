"""Tools that an OpenAI client brings along and runs, as options of a job; and how their calls are named."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import orjson
from pydantic import BaseModel, Field, ValidationError

from wayline.contracts.base import plain
from wayline.contracts.ids import tool_key
from wayline.contracts.jobs import ClientTool, PendingToolCall
from wayline.contracts.jobs.client_tools import CLIENT_TOOLS_MAX
from wayline.gateway.errors import UnsupportedParameter

RESULTS_WITHIN_S: Final = 3_600.0
"""How long a job waits for its client's next request: a conversation that was left holds nothing for longer."""
FUNCTION: Final = "function"
_CALL_ID: Final = re.compile(r"call_(?P<job>[A-Za-z0-9_-]{1,64})_(?P<step>\d{1,6})_(?P<call>\d{1,6})")


class FunctionSpec(BaseModel):
    """A function that the client runs."""

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = Field(default=None, description="Arguments always fit their schema before you are asked.")


class CallId(NamedTuple):
    """A call of a client's tool, as the client names it."""

    job_id: str
    step: int
    call: str

    @classmethod
    def of(cls, job_id: str, call: PendingToolCall) -> CallId:
        """Return the name of a call that a job waits for."""
        return cls(job_id, call.step, call.call)

    @classmethod
    def read(cls, text: str) -> CallId | None:
        """Return the call that an id names; None: none of a job here has such an id."""
        found = _CALL_ID.fullmatch(text)
        return None if found is None else cls(found["job"], int(found["step"]), found["call"])

    def __str__(self) -> str:
        return f"call_{self.job_id}_{self.step}_{self.call}"

    def key(self, tenant: str) -> str:
        """Return the key by which its job knows it."""
        return tool_key(tenant, self.job_id, self.step, self.call)


class GivenResult(NamedTuple):
    """What a client says that its tool returned."""

    call_id: str
    content: str
    param: str
    """Where the request says it."""


def tool_options(
    functions: Sequence[tuple[str, FunctionSpec | None]], *, choice: Any, parallel: bool | None
) -> Mapping[str, Any]:
    """Return the options of a job with these tools, each given with its type. Raises UnsupportedParameter."""
    if len(functions) > CLIENT_TOOLS_MAX:
        raise UnsupportedParameter("tools", f"at most {CLIENT_TOOLS_MAX} are taken")
    tools = tuple(_tool(place, kind, spec) for place, (kind, spec) in enumerate(functions))
    names = [tool.name for tool in tools]
    if (again := next((place for place, name in enumerate(names) if name in names[:place]), None)) is not None:
        raise UnsupportedParameter(f"tools.{again}", f"another tool is named {names[again]!r}")
    if choice not in (None, "auto", "none"):
        # Whether a model calls a tool is its own to say: nothing here could force it with every provider.
        raise UnsupportedParameter("tool_choice", "send auto or none: an agent's model chooses for itself")
    if not tools or choice == "none":
        return {}
    options: dict[str, Any] = {"client_tools": tools, "tool_results_within_s": RESULTS_WITHIN_S}
    return options | ({"tools_in_order": True} if parallel is False else {})


def _tool(place: int, kind: str, spec: FunctionSpec | None) -> ClientTool:
    if kind == FUNCTION and spec is None:
        raise UnsupportedParameter(
            f"tools.{place}.function", "a tool of type function has its name and parameters in it"
        )
    if kind != FUNCTION or spec is None:
        raise UnsupportedParameter(f"tools.{place}.type", f"a tool {kind!r} is not known here: give it to the agent")
    try:
        return ClientTool(name=spec.name, description=spec.description or "", input_schema=spec.parameters or {})
    except ValidationError as error:
        wrong = error.errors()[0]
        name = ".".join(str(part) for part in wrong["loc"]).replace("input_schema", "parameters")
        raise UnsupportedParameter(f"tools.{place}.function.{name}", plain(wrong["msg"])) from None


def arguments_text(call: PendingToolCall) -> str:
    """Return the arguments of a call as the text that OpenAI's clients read."""
    return orjson.dumps(call.arguments).decode()
