"""Tools: their definitions, and one call of one tool."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from fnmatch import fnmatchcase
from hashlib import sha256
from typing import Any, Literal

import orjson
from pydantic import Field

from wayline.contracts.base import Frozen, Message, Request, Usd
from wayline.contracts.call_origin import CallOrigin
from wayline.contracts.chat import Citation, ToolImage
from wayline.contracts.reranking import FoundPassages
from wayline.contracts.tool_charges import ToolCharge
from wayline.contracts.tool_details import ResultForm, ToolDetails, WholeResult
from wayline.contracts.working_context import Entity


class Effect(StrEnum):
    """What repeating a tool call would do."""

    READ = "read"
    IDEMPOTENT = "idempotent"
    RECONCILE = "reconcile"
    ONCE = "once"


Ask = Literal["always", "writes", "never"]
"""When a person must approve a call: each call, those of tools that do more than read, or none."""


_SORTED = json.JSONEncoder(sort_keys=True)
"""Made once: `json.dumps` makes another for each text that it sorts."""
BOUND_TO_PLACE = "at-"
"""Begins a digest that also covers where calls of a tool go."""


class ToolDefinition(Frozen):
    """A tool as a model sees it and as the ledger treats it."""

    name: str
    description: str = ""
    input_schema: dict[str, Any] = Field(default_factory=dict)
    effect: Effect = Effect.ONCE
    in_order: bool = Field(default=False, description="Never run beside another call of the same step.")
    timeout_s: float = Field(default=60, gt=0)
    server: str = ""
    ask: Ask = Field(default="never", description="When a person must approve a call, whatever the agent says.")
    untrusted: bool = Field(
        default=False, description="Its results are the words of strangers: a job that has read one is tainted."
    )
    charge: ToolCharge | None = Field(default=None, description="None: it is free, or says only afterwards.")
    reached: str = Field(
        default="",
        description="The hash of where its calls go: the URL or the program of its server, and whose login; empty: not "
        "known, or its own service on the bus.",
    )

    @property
    def is_free_read(self) -> bool:
        """Return whether a repeat of a call neither changes nor costs anything, so that it needs no ledger."""
        return self.effect is Effect.READ and self.charge is None

    @property
    def is_egress(self) -> bool:
        """Return whether its arguments may reach strangers, as the words come from them that it returns."""
        return self.untrusted

    @property
    def is_described_by_strangers(self) -> bool:
        """Return whether its description and its schema are their words: those of built-in tools are ours."""
        return self.untrusted and self.server != BUILTIN

    @property
    def digest(self) -> str:
        """Return the hash of what an approval of a call rests on."""
        if not self.reached:
            return self.digest_of_description
        bound = f"{self.digest_of_description} {self.reached}"
        return f"{BOUND_TO_PLACE}{sha256(bound.encode()).hexdigest()[:32]}"

    @property
    def digest_of_description(self) -> str:
        """Return the digest that a build finds which does not know where calls go."""
        # Named one by one: a build that knows another field has to find the same hash.
        shown = [self.name, self.description, self.input_schema, self.effect.value, self.server]
        return sha256(orjson.dumps(shown, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]


MEMORY_SAVE, MEMORY_RETRIEVE = "memory_save", "memory_retrieve"
STORE_INSIGHT, RETRIEVE_CONTEXT = "store_insight", "retrieve_context"
MEMORY_WRITES = frozenset({MEMORY_SAVE, STORE_INSIGHT})
"""Built-in tools that remember. What a tainted job saves is set aside until a person releases it; the call is free."""
MEMORY_TOOLS = frozenset({*MEMORY_WRITES, MEMORY_RETRIEVE, RETRIEVE_CONTEXT})
"""Never deferred: what a model has to search for it does not remember to use."""
TASK_TOOLS = (
    "semantic_search",
    "get_document_context",
    "detect_dependencies",
    "query_task_graph",
    "cluster_by_similarity",
)
"""The built-in tools by which tasks are planned, in the order in which they are called."""
_HYPHENED = {name.replace("_", "-"): name for name in TASK_TOOLS}
BY_NAME = frozenset(
    {
        *("calculator", "date_calculate", "image_generate", "web_fetch", "web_search"),
        *TASK_TOOLS,
        *MEMORY_TOOLS,
    }
)
"""Built-in tools that an agent has only where it names them: with `*` every prompt would pay for them."""
BUILTIN = "builtin"
"""The server of the tools that Wayline brings itself."""
USE_TOOL = "use_tool"
"""Calls another tool by its name: how a model reaches what was not there when its tools were listed."""
NOT_ITSELF = frozenset({USE_TOOL, *_HYPHENED})
"""Names by which a model may call another tool than one of that name."""
RECALL = "recall_details"
"""Reads the whole of a result that was shown in a shorter form."""


RUN_CODE = "run_code"
"""Runs a program that calls the other tools: the model is shown only what the program says."""


RUN_AGENT = "run_agent"
"""Has another agent do a task as a job of its own, and returns its answer."""


TOOL_SEARCH = "tool_search"
"""Finds tools that are not in the prompt, and loads them."""


def tool_named(name: str) -> str:
    """Return a tool's own name where it is written with hyphens, such as `detect-dependencies`."""
    return _HYPHENED.get(name, name)


def may_use(name: str, *, patterns: Iterable[str], off: Iterable[str] = ()) -> bool:
    """Return whether an agent with these `tools` and `tools_off` may use a tool of this name, if there is one."""
    allowed = any(
        fnmatchcase(name, tool_named(pattern)) for pattern in patterns if pattern != "*" or name not in BY_NAME
    )
    return allowed and not any(fnmatchcase(name, tool_named(pattern)) for pattern in off)


class ServerAway(Frozen):
    """A configured server that does not answer; the tools that it had are still listed."""

    name: str
    why: str = ""
    known: bool = Field(
        default=True, description="Whether its tools are listed: it was reached, or they were approved before."
    )
    tried: bool = Field(default=True, description="False: this replica has just started and not reached it yet.")


class MissingTool(Frozen):
    """A built-in tool that this installation is not configured for."""

    name: str
    why: str = Field(description="Which setting brings it.")


class ToolList(Frozen):
    """The tools whose names match."""

    tools: tuple[ToolDefinition, ...] = Field(description="Sorted by name.")
    away: tuple[ServerAway, ...] = Field(
        default=(), description="Servers that this replica of the registry cannot reach."
    )
    missing: tuple[MissingTool, ...] = Field(
        default=(), description="Built-in tools that this installation is not configured for."
    )
    details: dict[str, ToolDetails] = Field(
        default_factory=dict, description="What their servers say of them besides, by name, where it was asked for."
    )


class ToolError(Frozen):
    """Why a call did not succeed: `code` for programs, `message` for the model."""

    code: Literal[
        "unknown_tool",
        "invalid_arguments",
        "timeout",
        "tool_failed",
        "unavailable",
        "cancelled",
        "refused",
        "denied",
        "definition_changed",
        "needs_authorization",
    ]
    message: str


class InputRequest(Frozen):
    """What a tool's server asks a person for before it goes on with a call."""

    message: str = Field(description="What the person is asked, in the server's words.")
    input_schema: dict[str, Any] = Field(description="What an answer must look like.")
    keys: tuple[str, ...] = Field(
        description="The server's names of its questions; of several, each is a property of the schema."
    )
    state: str | None = Field(default=None, description="Opaque to us: the server wants it back with the answer.")
    after_cancel: str | None = Field(
        default=None,
        description="What the server said when its question was cancelled until a person answers; the answer calls the "
        "tool again from its beginning. None: the call had ended with the question.",
    )


class InputAnswer(Frozen):
    """What a person answered to a tool's server."""

    answers: dict[str, dict[str, Any]] = Field(description="By the server's names of its questions.")
    state: str | None = None


PROGRESS_MAX_CHARS = 300
NOT_ASKED = frozenset(
    {"unknown_tool", "invalid_arguments", "unavailable", "refused", "denied", "definition_changed"},
)
"""Errors of calls that their tool was never asked for."""


class ToolProgress(Frozen):
    """How far a call is, as its server says while it runs."""

    progress: float = Field(description="Grows with every word of it.")
    total: float | None = Field(default=None, description="What it grows to; None: nobody knows.")
    message: str = Field(default="", max_length=PROGRESS_MAX_CHARS)


class ToolReply(Frozen):
    """What became of a call. `in_progress`: ask again with the same key; `unknown`: nobody knows, ask a human."""

    status: Literal["success", "failed", "in_progress", "unknown"]
    content: str = ""
    images: tuple[ToolImage, ...] = Field(
        default=(), description="What `content` says in words only: `[image image/png, 640x480]`."
    )
    citations: tuple[Citation, ...] = ()
    entities: tuple[Entity, ...] = Field(default=(), description="What the result is about, as the tool declares it.")
    error: ToolError | None = None
    effect: Effect = Effect.READ
    attempts: int = 1
    repeated: bool = Field(default=False, description="The stored result of an earlier execution.")
    duration_ms: float = 0
    size_bytes: int = 0
    tokens: int = Field(default=0, description="Estimated tokens of `content`.")
    cost_usd: Usd | None = Field(
        default=None, description="What the tool itself charged; None: it is free, or where it has a `charge`, unknown."
    )
    begun: bool = Field(default=True, description="False: the tool was never asked, so that it charged nothing.")
    progress: ToolProgress | None = Field(default=None, description="Of a call that runs, where its server says it.")
    input: InputRequest | None = Field(
        default=None,
        description="The call ended with a question to a person: the next one, under another key, brings the answer.",
    )
    strangers: bool | None = Field(
        default=None,
        description="Whether it holds words of strangers, in its content or in its error; None: the definition of its "
        "tool tells.",
    )
    whole: WholeResult | None = Field(default=None, description="The same as the server gave it, where that was asked.")
    found: FoundPassages | None = Field(
        default=None, description="What a search found, where a model is to choose the best; `content` shows the first."
    )

    @property
    def may_have_charged(self) -> bool:
        """Return whether the tool was asked and has not said what it charged."""
        asked = self.begun and not (self.error is not None and self.error.code in NOT_ASKED)
        return asked and self.cost_usd is None


class ListTools(Request, subject="tools.list.{tenant}", replies=ToolList):
    """Ask for the definitions an agent may use."""

    patterns: tuple[str, ...] = ("*",)
    details: bool = Field(default=False, description="Whether to say what only people and MCP clients need, too.")


class CallTool(Request, subject="tools.call.{tenant}", replies=ToolReply):
    """Run a tool, once for its key however often this is asked."""

    key: str = Field(description="`<tenant>/<job>/<step>/<call>`, see `ids.tool_key`.")
    job_id: str
    step: int
    call: str
    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    deadline: datetime = Field(description="Past it the registry refuses to begin.")
    user_id: str | None = Field(
        default=None, description="Whom it is for: a server with logins of single users is called with that user's."
    )
    origin: CallOrigin | None = Field(
        default=None, description="Of a call that remembers: what the log of its job proves, for built-in tools alone."
    )
    definition: str | None = Field(
        default=None,
        description="The digest of the definition that a person approved: of a tool that has another one now the call "
        "never begins.",
    )
    answer: InputAnswer | None = Field(default=None, description="To what the call before it ended with.")
    asked_before: bool = Field(
        default=False,
        description="Whether the call may have been made already: a read that names no charge is looked for first.",
    )
    direct: bool = Field(
        default=False,
        description="Of no job: a built-in tool counts what it costs where it is spent, instead of reporting it.",
    )
    form: ResultForm = Field(
        default="text",
        description="`value`: the structured content as JSON, where there is any. `whole`: all as the server gave it.",
    )
    rerank: bool = Field(
        default=False, description="Whether the job can have what a search finds ranked again, and wants it by default."
    )
    misfit: str | None = Field(
        default=None,
        description="The digest of a definition that the arguments do not fit, says the caller: it never begins.",
    )

    def content_hash(self) -> str:
        """Return the hash of what is asked for under the key: the same key with another one is a conflict."""
        answer = None if self.answer is None else self.answer.model_dump(mode="json")
        # Not orjson: it takes no whole numbers beyond 64 bits.
        asked = _SORTED.encode([self.tool, self.arguments, self.user_id, answer])
        return sha256(asked.encode()).hexdigest()


class CancelTool(Message, subject="tools.cancel.{tenant}"):
    """Stop a running call; every replica hears it, the one that runs the key acts."""

    key: str


class VoidTool(Request, subject="tools.void.{tenant}", replies=ToolReply):
    """End a call for good, because its job ends: one that has not begun never begins, one that runs is awaited.

    `in_progress` means that the call still runs: ask again. Any other reply is what the ledger says from now on.
    """

    key: str
    job_id: str
    step: int
    call: str
    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict, description="For a tool that is asked what became of it.")
    deadline: datetime = Field(description="Past it the tool is not asked any more.")
    user_id: str | None = Field(default=None, description="With whose login the tool is asked.")


class ResolveTool(Request, subject="tools.resolve.{tenant}", replies=ToolReply):
    """Write down a human's decision on an unknown outcome; a result that arrived meanwhile wins."""

    key: str
    outcome: Literal["succeeded", "failed"]
    content: str = ""
