"""How a job is asked for: its input, its options, what it branches off, what submitted it."""

from __future__ import annotations

import json
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints, model_validator

from wayline.contracts.agents import Instructions, Style, ToolPatterns
from wayline.contracts.base import Frozen, Message
from wayline.contracts.chat import Part, TextPart
from wayline.contracts.ids import ChosenJobId, JobId, Name
from wayline.contracts.jobs.client_tools import ClientTools
from wayline.contracts.jobs.job_webhook import JobWebhook
from wayline.contracts.jobs.memory_jobs import Extraction, Summarizing
from wayline.contracts.models import Effort
from wayline.contracts.money import Dollars

SECONDS_MAX = 14 * 86_400
"""A job ends within 14 days: the log keeps its records for 30, so no live log loses its head."""
OUTPUT_SCHEMA_MAX_BYTES = 64 * 1024
"""Of a job's own schema, as JSON."""
HISTORY_MESSAGES_MAX = 2_000
"""Of a conversation that its client keeps."""


Lane = Literal["interactive", "batch"]


WhenBusy = Literal["wait", "refuse", "interrupt", "steer"]

TAGS_MAX = 16
Tag = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_.-]{0,31}:[A-Za-z0-9_.@/-]{1,64}$")]
"""A label of a job, such as `team:billing`."""


def _short_schema(schema: dict[str, Any]) -> dict[str, Any]:
    if len(json.dumps(schema, ensure_ascii=False).encode()) > OUTPUT_SCHEMA_MAX_BYTES:
        raise ValueError(f"the schema has more than {OUTPUT_SCHEMA_MAX_BYTES} bytes")
    return schema


OutputSchema = Annotated[dict[str, Any], AfterValidator(_short_schema)]


class JobOptions(Frozen):
    """What one job may ask for beyond its agent's configuration; an unknown option is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str | None = Field(default=None, description="`provider/model`, instead of the router's choice.")
    task_type: str | None = Field(default=None, max_length=64)
    style: str | None = Field(
        default=None, max_length=200, description="How to answer; said to the model beside the input."
    )
    agent_style: Style | None = Field(
        default=None, description="When to use tools, instead of what its agent says: the `style` of an agent."
    )
    tools: ToolPatterns | None = Field(
        default=None, description="Of the tools that its agent may use only these, by name or `prefix*` pattern."
    )
    web_search: bool | None = Field(default=None, description="false: no tools that search the web or fetch pages.")
    memory: bool | None = Field(default=None, description="false: no tools that keep and find memories.")
    images: bool | None = Field(default=None, description="false: no tools that make or edit images.")
    show_reasoning: bool | None = Field(
        default=None,
        description="Show models' thinking in its events, or hide it; an agent that hides it itself is not overridden.",
    )
    output_schema: OutputSchema | None = Field(
        default=None,
        description="JSON Schema of this job's answer, which is then JSON; in place of its agent's `output_schema`.",
    )
    effort: Effort | None = Field(
        default=None, description="How hard a reasoning model thinks, in the place of its agent's `effort`."
    )
    temperature: float | None = Field(
        default=None,
        ge=0,
        le=2,
        description="In the place of its agent's `temperature`; sent only to models that take one.",
    )
    max_steps: int | None = Field(
        default=None, ge=1, le=1_000, description="Model calls; never more than its agent sets itself."
    )
    max_output_tokens: int | None = Field(default=None, ge=1)
    max_seconds: float | None = Field(default=None, gt=0, le=SECONDS_MAX)
    provider_patience_s: float | None = Field(
        default=None,
        ge=0,
        le=SECONDS_MAX,
        description="How long the job waits, parked, for a provider that is away or refuses calls and has no fallback. "
        "Unless set, an interactive job waits as long as it may run, and a batch job 6 hours.",
    )
    budget_usd: Dollars | None = Field(
        default=None, description="What the job may spend; never more than its agent and budgets for each job allow."
    )
    at_cap: Literal["partial", "park"] = "partial"
    required_tools: tuple[str, ...] = Field(
        default=(),
        description="Refuse the job when one of these is missing; an answer before all of them ran is sent back once.",
    )
    lane: Lane = "interactive"
    when_busy: WhenBusy = Field(
        default="wait",
        description="What to do while an earlier job of the session has not ended: wait for its end, be refused "
        "(`session_busy`), cancel it and go on, or hand the input to it and end.",
    )
    tags: tuple[Tag, ...] | None = Field(
        default=None,
        max_length=TAGS_MAX,
        description="Labels to find it by and to group costs by, each `key:value`, such as `team:billing`.",
    )
    client_tools: ClientTools | None = Field(
        default=None,
        description="Tools that you run yourself: where the model calls one, the job parks (`tool_results`) and goes "
        "on with the results that you give it.",
    )
    tools_in_order: bool | None = Field(
        default=None, description="true: run the calls of a step one after another, also where its agent does not."
    )
    tool_results_within_s: float | None = Field(
        default=None,
        gt=0,
        le=SECONDS_MAX,
        description="How long it waits for the result of such a call, which has failed then; unless set, as long as a "
        "person may take to decide.",
    )
    webhook: JobWebhook | None = Field(
        default=None, description="Where its events are sent, beside the webhooks of its tenant."
    )
    agent_label: Name | None = Field(
        default=None,
        description="Which version of its agent answers: the one that has this label, such as `production` or "
        "`candidate`. Unless set, a session goes on with the version that it began with.",
    )
    dry_run: bool = Field(default=False, description="Decide the route and its predicted cost; run nothing.")


YOUNGER_OPTIONS = (
    "agent_style",
    "tools",
    "web_search",
    "memory",
    "images",
    "show_reasoning",
    "provider_patience_s",
    "output_schema",
    "effort",
    "temperature",
    "tags",
    "client_tools",
    "tool_results_within_s",
    "tools_in_order",
    "webhook",
    "agent_label",
)
"""Options that stored hashes of submissions know nothing of."""
INPUT_SHOWN_MAX = 200
"""Characters of a job's input that lists and details show; its log has the whole."""


class ForkedResult(Frozen):
    """What a tool shall have returned."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    content: str
    failed: bool = False


class Fork(Frozen):
    """Where a job branches off another one, and what is different from there on."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    job_id: JobId = Field(description="The job that it branches off.")
    after: int | None = Field(
        default=None, ge=1, description="The last event that they share; None: before the step that failed."
    )
    prompt: Instructions | None = Field(default=None, description="Another system prompt.")
    arguments: dict[str, dict[str, Any]] | None = Field(
        default=None, description="Other arguments of calls of the `model.completed` at `after`, by call."
    )
    tool_result: ForkedResult | None = Field(
        default=None, description="In the place of the result of the `tool.completed` at `after`."
    )
    without_memory: tuple[str, ...] | None = Field(
        default=None,
        max_length=100,
        description="Facts that its model shall not have been told. Without `after` it branches off where it was told.",
    )


class Origin(Frozen):
    """What a fork shares with the job that it branched off."""

    job_id: str
    seq: int = Field(description="The last event that they share.")
    hash: str = Field(description="Of that job's events up to there.")


def _told(given: Any) -> Any:
    """Return an object as the text that its job is told."""
    return json.dumps(given, ensure_ascii=False, separators=(",", ":")) if isinstance(given, dict) else given


if TYPE_CHECKING:
    JobInput = str | tuple[Part, ...]
else:
    JobInput = Annotated[str | tuple[Part, ...] | dict[str, Any], AfterValidator(_told)]


class EarlierMessage(Frozen):
    """A message of a conversation that its client keeps, and that was said before the job."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    role: Literal["user", "assistant", "system"] = Field(
        description="`system`: what the application says beside the conversation. It is told as the application's "
        "words, and never as the agent's instructions."
    )
    parts: tuple[Part, ...] = Field(description="Of a user text, images and files; of the others text.")

    @model_validator(mode="after")
    def _say_words(self) -> Self:
        if self.role != "user" and any(not isinstance(part, TextPart) for part in self.parts):
            raise ValueError(f"a message of role {self.role!r} has text alone")
        return self

    @property
    def text(self) -> str:
        """Return its words."""
        return "\n".join(part.text for part in self.parts if isinstance(part, TextPart))


class SubmitJob(Message, subject="jobs.submit.{tenant}"):
    """Ask for a job: `{"agent": "assistant", "input": "…"}` is enough."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    terse = True
    from_clients = True
    body_max = 112 * 1024

    agent: str = Field(min_length=1, max_length=64)
    input: JobInput = Field(
        description="Text; an object, which is told as its JSON; or parts: text, image, file by document id."
    )
    job_id: ChosenJobId | None = Field(default=None, description="The client's own id; the same id is the same job.")
    history: tuple[EarlierMessage, ...] = Field(
        default=(),
        max_length=HISTORY_MESSAGES_MAX,
        description="What was said before, where its client keeps the conversation. A session keeps it itself: a job "
        "with a `session_id` has none.",
    )
    session_id: str | None = Field(default=None, max_length=128)
    user_id: str | None = Field(default=None, max_length=128)
    options: JobOptions = JobOptions()
    fork: Fork | None = Field(
        default=None,
        description="It branches off another job: same agent, and the same input unless nothing is shared.",
    )

    extract: Extraction | None = Field(
        default=None,
        description="It answers nothing: it remembers what its user said in these ended jobs (see docs/memory.md).",
    )
    summarize: Summarizing | None = Field(
        default=None,
        description="It answers nothing: it summarises what is remembered of its user (see docs/memory.md).",
    )

    @model_validator(mode="after")
    def _have_one_past(self) -> Self:
        beside = self.history or self.session_id is not None or self.fork is not None
        if self.keeps_memory and (beside or self.user_id is None):
            raise ValueError("what extracts or summarises facts has a user_id, and no history, session_id or fork")
        if self.extract is not None and self.summarize is not None:
            raise ValueError("a job extracts facts or summarises them")
        if self.history and self.session_id is not None:
            raise ValueError("the session keeps what was said before: leave out history or session_id")
        return self

    @property
    def keeps_memory(self) -> bool:
        """Return whether it answers nobody: it extracts facts about its user, or summarises them."""
        return self.extract is not None or self.summarize is not None

    def content_hash(self) -> str:
        """Hash what makes two submissions the same job: everything but the id."""
        # An option that is younger than stored hashes counts only where it is set.
        younger = {name for name in YOUNGER_OPTIONS if getattr(self.options, name) is None}
        younger |= {"when_busy"} if self.options.when_busy == "wait" else set()
        beside = {"job_id": True, "options": younger} | ({"fork": True} if self.fork is None else {})
        beside |= {} if self.history else {"history": True}
        beside |= {"extract": True} if self.extract is None else {}
        beside |= {"summarize": True} if self.summarize is None else {}
        content = self.model_dump_json(exclude=beside)
        return sha256(content.encode()).hexdigest()[:32]

    def parts(self) -> tuple[Part, ...]:
        """Return the input as parts, whichever way it was written."""
        return (TextPart(text=self.input),) if isinstance(self.input, str) else self.input

    def told_parts(self) -> tuple[Part, ...]:
        """Return all parts that its first prompt holds: of what was said before, then of its input."""
        return (*(part for message in self.history for part in message.parts), *self.parts())

    def beginning(self) -> str:
        """Return the beginning of the input on one line; an image or a file stands as its kind and its document."""
        # No more than can be shown is read: an input may have a million characters of white space.
        read_max = 4 * INPUT_SHOWN_MAX
        if isinstance(self.input, str):
            texts = [self.input[:read_max]]
        else:
            texts = [
                part.text[:read_max] if isinstance(part, TextPart) else f"[{part.type} {part.document_id}]"
                for part in self.input[:INPUT_SHOWN_MAX]
            ]
        line = " ".join(" ".join(texts).split())
        return line if len(line) <= INPUT_SHOWN_MAX else f"{line[: INPUT_SHOWN_MAX - 1]}…"


class Turn(Frozen):
    """A job's place in its session: they run one at a time, in this order."""

    number: int = Field(ge=1)
    after: str | None = Field(default=None, description="The job before it, whatever became of that; None: the first.")


class SubmittedBy(Frozen):
    """Who asked for a job, and through which door."""

    how: Literal["key", "openai", "mcp", "bus", "schedule", "parent"] = Field(
        description="`key`: over HTTP; `openai` and `mcp`: with a key too, at those doors; `bus`: published by a "
        "client of the bus; `schedule`; `parent`: by another job."
    )
    name: str | None = Field(
        default=None, max_length=200, description="Of the key, the schedule or the job that asked for it."
    )
    key_id: str | None = Field(default=None, max_length=64, description="Of the key; null where none was shown.")


class FiredBy(Frozen):
    """The schedule that a job was submitted by, and the moment that it was submitted for."""

    schedule: str
    version: int
    due_at: datetime
    missed: int = Field(default=0, description="Earlier moments that passed without a job.")
