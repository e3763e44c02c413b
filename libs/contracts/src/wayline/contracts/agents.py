"""Agents: who answers a job, and with what."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from wayline.contracts.agent_labels import AgentLabel
from wayline.contracts.assemblers import DRAFTS, Assembler
from wayline.contracts.base import Frozen, Request
from wayline.contracts.chat import Part
from wayline.contracts.ids import Name
from wayline.contracts.models import Effort
from wayline.contracts.money import Dollars
from wayline.contracts.tools import Ask

_PLACEHOLDER = re.compile(r"\{\{[^{}\n]*\}\}|\{[A-Za-z_][\w.]*\}|\$\{\w+\}|<<\w+>>|%\(\w+\)s")


def _static(instructions: str) -> str:
    found = _PLACEHOLDER.search(instructions)
    if found:
        raise ValueError(
            f"instructions hold the placeholder {found.group()!r}: they are the same for every job, so that the prompt "
            "stays cached. Put what changes into the job's input, or let a tool fetch it"
        )
    return instructions


Style = Literal["tool_first", "balanced", "direct"]
"""How an agent weighs tools against what its model knows."""
Language = Annotated[str, Field(min_length=2, max_length=40, pattern=r"^[A-Za-z][A-Za-z -]*$")]

Instructions = Annotated[str, Field(max_length=100_000), AfterValidator(_static)]
ModelName = Annotated[str, Field(min_length=1, max_length=265)]
MaxSteps = Annotated[int, Field(ge=1, le=1_000)]
MaxSeconds = Annotated[float, Field(gt=0, le=14 * 86_400)]
MaxOutputTokens = Annotated[int, Field(ge=1)]
MaxCost = Annotated[Dollars, Field(gt=0)]
PATTERNS_MAX = 100
VERSIONS_A_PAGE_MAX = 100
ToolPattern = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[^\s\x00]+$")]
ToolPatterns = Annotated[tuple[ToolPattern, ...], Field(max_length=PATTERNS_MAX)]


def _memory_mode(value: object) -> object:
    """Return a mode of memory as it is stored: readers of the version before know true and false alone."""
    return {"off": False, "read_write": True}.get(value, value) if isinstance(value, str) else value


MemoryChoice = Annotated[
    bool | Literal["read"],
    BeforeValidator(_memory_mode),
    WithJsonSchema({"anyOf": [{"type": "boolean"}, {"enum": ["off", "read", "read_write"], "type": "string"}]}),
]
"""True: read and write. What is stored is `true`, `false` or `read`."""


class Routing(Frozen):
    """Which models an agent works with. A slot holds `provider/model` or a tier; an empty one has its default tier."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mode: Literal["locked", "auto"] = Field(
        default="auto", description="`locked`: always the primary; `auto`: the cheapest slot that can do the work."
    )
    fast: ModelName | None = Field(default=None, description="Else the tier flash.")
    primary: ModelName | None = Field(default=None, description="Else the tier standard.")
    escalation: ModelName | None = Field(default=None, description="Else the tier premium.")
    reasoning: ModelName | None = Field(default=None, description="Else no job is sent to a reasoning model.")
    fallbacks: tuple[ModelName, ...] = Field(default=(), description="Who takes over when a model cannot be reached.")
    on_refusal: Literal["fail", "fallback"] = Field(
        default="fail",
        description="When a model refuses to answer: end the job (`fail`), or ask the next of `fallbacks`, which is "
        "not shown the refusal.",
    )
    confidence_min: float = Field(default=0.6, ge=0, le=1, description="Below it a step is weak, and escalates.")
    budget_aware: bool = Field(default=True, description="Take a cheaper slot when the budget is nearly used up.")


class ToolLoading(Frozen):
    """Which of an agent's tools are in every prompt, and which it finds with `tool_search`: names or patterns.

    The longest pattern that fits a tool counts; a tool that none fits is found.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    always: tuple[str, ...] = Field(default=(), max_length=1_000)
    deferred: tuple[str, ...] = Field(default=(), max_length=1_000)

    @property
    def patterns(self) -> tuple[str, ...]:
        """Return the patterns of all tools that the agent may use."""
        return tuple(dict.fromkeys((*self.always, *self.deferred)))


_TOOLS_SCHEMA = {
    "anyOf": [{"items": {"type": "string"}, "type": "array"}, ToolLoading.model_json_schema(mode="validation")]
}


class AgentConfig(Frozen):
    """How an agent behaves; a saved change is a new version, and a job keeps the version it began with."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    description: str = Field(default="", max_length=1_000)
    instructions: Instructions = Field(default="", description="The system prompt; static text without placeholders.")
    style: Style | None = Field(
        default=None,
        description="When it uses tools; said at the head of the system prompt. Left out: the tenant's settings say; "
        "null: nothing is said of it.",
    )
    language: Language | None = Field(
        default=None, description="The language of all answers, such as `German`; None: the instructions decide."
    )
    pinned: tuple[Part, ...] = Field(
        default=(),
        max_length=100,
        description="Documents and images that follow the instructions in every job; each keeps the bytes that it had "
        "when the agent was saved.",
    )
    model: str | None = Field(default=None, description="`provider/model`, or nothing: the router decides.")
    routing: Routing = Routing()
    task_type: str | None = Field(default=None, max_length=64, description="What its jobs are, unless they say so.")
    classify: bool = Field(default=False, description="Ask a flash model for the task type of a job that names none.")
    temperature: float = Field(default=0.7, ge=0, le=2, description="Sent only to models that take one.")
    effort: Effort | None = Field(default=None, description="How hard a reasoning model thinks; None: its default.")
    output_schema: dict[str, Any] | None = Field(
        default=None, description="JSON Schema of the final answer, which is then JSON."
    )
    assemble: Assembler | None = Field(
        default=None,
        description="Makes the result from what the job's tools recorded and the model's answer (see docs/agents.md); "
        "it fits `output_schema`.",
    )
    on_invalid: Literal["fail", "empty"] = Field(
        default="fail",
        description="When no answer fits `output_schema`: the job fails, or it ends with an empty result that fits, "
        "and says why.",
    )
    tools: Annotated[tuple[str, ...], WithJsonSchema(_TOOLS_SCHEMA)] = Field(
        default=("*",),
        description="Names or `prefix*` patterns of the tools it may use; or `{always, deferred}`, which is kept as "
        "this list and as `tools_loading`.",
    )
    tools_loading: ToolLoading | None = Field(
        default=None,
        description="Which of its tools are in every prompt; the others are found with `tool_search`. None: all where "
        "there are at most 15, else 15 of them (see docs/tools.md).",
    )
    tools_off: tuple[str, ...] = Field(
        default=(), max_length=100, description="Names or `prefix*` patterns of tools it may not use all the same."
    )
    web_search: bool = Field(default=True, description="Let it use tools that search the web or fetch pages.")
    memory: MemoryChoice = Field(
        default=True,
        description="What it may remember of a job's user: true (`read_write`), `read` or false (`off`). What is "
        "remembered is told at the beginning of a conversation; with `*` among its tools it also has `memory_save` and "
        "`memory_retrieve` in jobs with a `user_id`.",
    )
    images: bool = Field(default=True, description="Let it use tools that make or edit images.")
    code: bool = Field(
        default=False, description="Let the model answer with programs that call the tools (see docs/code.md)."
    )
    agents: tuple[Name, ...] = Field(
        default=(),
        max_length=32,
        description="The agents that it may start with `run_agent`, each as a job of its own (see docs/agents.md).",
    )
    tools_in_order: bool = Field(default=False, description="Run a step's tool calls one after another.")
    ask: Ask = Field(
        default="never",
        description="When a person must approve a tool call: `always`, `writes` (tools that do more than read) or "
        "`never`. What a tool itself asks for holds all the same.",
    )
    ask_tools: dict[str, Ask] = Field(
        default_factory=dict,
        max_length=100,
        description="The same for single tools, by name or `prefix*` pattern; the longest pattern that fits counts.",
    )
    ask_when_tainted: bool = Field(
        default=True,
        description="Have a person approve every call that does more than read, once the job has read a result of an "
        "untrusted tool.",
    )
    ask_egress: bool = Field(
        default=False,
        description="Then have a person approve every call of an untrusted tool as well, also one that only reads, "
        "such as `web_fetch`: its arguments can carry out what the job knows.",
    )
    over_mcp: bool = Field(
        default=True,
        description="Let clients of the gateway's `/mcp` run it; `false`: it is neither listed nor run there.",
    )
    context: Literal["window", "budgeted"] = Field(
        default="window",
        description="`budgeted`: a call takes at most 20,000 to 40,000 tokens, by the job's complexity; `window`: what "
        "its model's window has room for.",
    )
    summarize_results: bool = Field(
        default=False,
        description="Have a helper model summarise long tool results; else, and where it cannot, they are shortened.",
    )
    rerank: bool = Field(
        default=False,
        description="Have a helper model choose the best of the first 20 passages that `search_knowledge` finds, "
        "where a call does not say otherwise (see docs/search.md).",
    )
    rewrite_queries: bool = Field(
        default=False,
        description="Have a helper model write what `search_knowledge` is to find, from the query and what was said in "
        "the conversation before the job (see docs/search.md).",
    )
    extract_memories: bool = Field(
        default=False,
        description="Have a helper model read what its users have said in a session that has gone quiet, for facts "
        "that last; for an agent that may write memories (see docs/memory.md).",
    )
    summarize_memories: bool = Field(
        default=False,
        description="Have a helper model write one fact for several that belong together, of what is remembered of its "
        "users; for an agent that may write memories (see docs/memory.md).",
    )
    show_reasoning: bool = Field(
        default=False, description="Show what its models let us read of their thinking in the events of its jobs."
    )
    max_steps: MaxSteps = 5
    adapt_steps: bool = Field(
        default=True,
        description="Give a job a share of `max_steps` by how complex it looks, as docs/settings.md says.",
    )
    max_seconds: MaxSeconds = 600
    max_output_tokens: MaxOutputTokens = 4_096
    max_cost_usd: MaxCost | None = Field(
        default=None, description="What a job may spend that says nothing of it; None: the tenant's settings say."
    )

    @property
    def answer_schema(self) -> dict[str, Any] | None:
        """Return what the model's last word must fit; with an assembler only a part of the result is the model's."""
        return self.output_schema if self.assemble is None else DRAFTS[self.assemble]

    @model_validator(mode="after")
    def _have_schema(self) -> Self:
        if self.output_schema is None and (self.assemble is not None or self.on_invalid != "fail"):
            raise ValueError("assemble and on_invalid are for an agent with an output_schema")
        return self

    @model_validator(mode="before")
    @classmethod
    def _split_tools(cls, given: Any) -> Any:
        """Keep `tools: {always, deferred}` as a list and its loading: builds of before read the list."""
        tools = given.get("tools") if isinstance(given, dict) else None
        if not isinstance(tools, dict):
            return given
        loading = ToolLoading.model_validate(tools)
        return {**given, "tools": loading.patterns, "tools_loading": loading}


class Agent(Frozen):
    """One saved version of an agent."""

    name: Name
    version: int = Field(ge=1)
    config: AgentConfig
    inherits: tuple[str, ...] = Field(
        default=(),
        description="Fields that it leaves to the tenant's settings; `config` shows what they come to now. Leave them "
        "out when you save it again.",
    )
    default_model: ModelName | None = Field(
        default=None, description="Of the tenant's settings: it takes jobs where neither job nor agent names a model."
    )
    warnings: tuple[str, ...] = Field(
        default=(), description="What was odd when it was saved, such as tools that do not exist (yet)."
    )
    labels: tuple[AgentLabel, ...] = Field(default=(), description="Of its versions, by name.")


class AgentList(Frozen):
    """The newest version of each agent."""

    agents: tuple[Agent, ...]


class Deleted(Frozen):
    """Whether there was such an agent."""

    deleted: bool


class GetAgent(Request, subject="agents.get.{tenant}", replies=Agent):
    """Ask for the newest version of an agent."""

    name: str


class ListAgents(Request, subject="agents.list.{tenant}", replies=AgentList):
    """Ask for the newest version of every agent, or for some of them by name."""

    after: str = Field(default="", description="Only those whose names come behind this.")
    limit: int | None = Field(default=None, ge=1, description="So many at most; None: all.")


class PutAgent(Request, subject="agents.put.{tenant}", replies=Agent):
    """Save an agent; the answer carries the new version (the same one when nothing changed)."""

    terse = True

    name: Name
    config: AgentConfig
    by: str = Field(default="", max_length=128, description="Who saves it: the name of an API key.")


class DeleteAgent(Request, subject="agents.delete.{tenant}", replies=Deleted):
    """Retire an agent: jobs that began with it go on, new ones are refused."""

    name: str


class RestoreAgent(Request, subject="agents.restore.{tenant}", replies=Agent):
    """Bring an agent back: a bundled one as it was delivered, any other as it was last saved."""

    name: Name
    by: str = Field(default="", max_length=128, description="Who restores it.")


class SavedVersion(Frozen):
    """When a version of an agent was saved, by whom, and what it changed."""

    version: int
    saved_at: datetime
    saved_by: str = Field(default="", description="The name of an API key; empty: it came with Wayline, or is older.")
    retired_at: datetime | None = Field(default=None, description="When the agent was deleted, with all its versions.")
    changed: tuple[str, ...] = Field(
        default=(), description="The fields that differ from the version before; none for the first."
    )
    labels: tuple[str, ...] = Field(default=(), description="That it has now.")


class AgentHistory(Frozen):
    """Versions of an agent, newest first."""

    versions: tuple[SavedVersion, ...]


class SavedAgent(SavedVersion):
    """One version of an agent, as a job that begins with it now would go by it."""

    name: Name
    config: AgentConfig
    inherits: tuple[str, ...] = ()


class ListAgentVersions(Request, subject="agents.versions.{tenant}", replies=AgentHistory):
    """Ask for the versions of an agent, newest first, also of one that was deleted."""

    name: Name
    before: int | None = Field(default=None, ge=1, description="Only versions below this one.")
    limit: int = Field(default=50, ge=1, le=VERSIONS_A_PAGE_MAX + 1)


class GetAgentVersion(Request, subject="agents.version.{tenant}", replies=SavedAgent):
    """Ask for one version of an agent."""

    name: Name
    number: int = Field(ge=1)
