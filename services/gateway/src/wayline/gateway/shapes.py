"""Bodies of HTTP requests and answers that the contracts do not define; the tenant comes from the key only."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import orjson
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from wayline.contracts import ids
from wayline.contracts.agents import Instructions
from wayline.contracts.chat import Part
from wayline.contracts.jobs import ForkedResult, JobOptions, JobView, Status
from wayline.contracts.knowledge import Filter
from wayline.contracts.models import Provider, ProviderList
from wayline.contracts.money import Dollars
from wayline.contracts.sessions import Session
from wayline.contracts.tenants import REASON_MAX
from wayline.contracts.working_context import WorkingContext
from wayline.gateway.keys import SCOPES, Scope

METADATA_MAX_BYTES = 16 * 1024
TEXT_WITHOUT_NUL = r"^[^\x00]*$"
ONE_LINE = r"^[^\x00-\x1f\x7f]*$"

Label = Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=ONE_LINE)]
Text = Annotated[str, StringConstraints(pattern=TEXT_WITHOUT_NUL)]


def _storable(value: dict[str, Any]) -> dict[str, Any]:
    try:
        encoded = orjson.dumps(value)
    except (TypeError, orjson.JSONEncodeError) as error:
        raise ValueError(f"this is not plain JSON: {error}") from None
    if b"\\u0000" in encoded:
        raise ValueError("a NUL character cannot be stored")
    if len(encoded) > METADATA_MAX_BYTES:
        raise ValueError(f"{len(encoded)} bytes are too many; {METADATA_MAX_BYTES} are allowed")
    return value


Metadata = Annotated[dict[str, Any], AfterValidator(_storable)]


class Body(BaseModel):
    """A request body; an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class ForkBody(Body):
    """Where a job branches off another one, and what is different from there on."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"after": 12, "model": "anthropic/claude-opus-5-5"},
                {"after": 17, "tool_result": {"content": "no such order", "failed": True}},
            ]
        }
    )

    after: int | None = Field(
        default=None, ge=1, description="The last event that both share; left out: before the step that failed."
    )
    model: Label | None = Field(default=None, description="`provider/model` that goes on.")
    input: Text | tuple[Part, ...] | None = Field(
        default=None, description="Another input, where no model has been told the first one by `after`."
    )
    prompt: Instructions | None = Field(default=None, description="Another system prompt.")
    arguments: dict[str, dict[str, Any]] | None = Field(
        default=None, description="Other arguments of calls of the `model.completed` at `after`, by call."
    )
    tool_result: ForkedResult | None = Field(
        default=None, description="In the place of the result of the `tool.completed` at `after`."
    )
    budget_usd: Dollars | None = Field(default=None, description="What the fork may spend.")
    max_steps: int | None = Field(default=None, ge=1, le=1_000, description="Those that it shares included.")
    job_id: ids.NewJobId | None = Field(default=None, description="The fork's own id; the same id is the same fork.")


class ExportedAgent(BaseModel):
    """The agent of an exported job, as it was pinned."""

    name: str
    version: int | None = Field(default=None, description="None: the job was refused before it was routed.")
    config: dict[str, Any] | None = None


class ExportedJob(BaseModel):
    """A job as one self-contained file."""

    format: Literal["wayline.job"]
    version: int = Field(description="Of the file's form.")
    job_id: str
    agent: ExportedAgent
    models: list[dict[str, Any]] = Field(description="Cards of the models that it called, with their prices then.")
    events: list[dict[str, Any]] = Field(description="The log from its first event, every payload in place.")


class SubmitBody(Body):
    """A job to run."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"agent": "assistant", "input": "How does Wayline survive a crash?"},
                {
                    "agent": "assistant",
                    "input": [{"type": "text", "text": "Summarise this."}],
                    "session_id": "s-1",
                    "options": {"max_steps": 3, "budget_usd": "0.05"},
                },
            ]
        }
    )

    agent: Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=ONE_LINE)]
    input: str | tuple[Part, ...] = Field(description="Text, or parts: text, image, file by document id.")
    job_id: ids.NewJobId | None = Field(default=None, description="Your own id; the same id is the same job.")
    session_id: Label | None = None
    user_id: Label | None = None
    options: JobOptions = JobOptions()


class Accepted(BaseModel):
    """A job that the bus has stored: it will run, whatever happens to this process."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "job_id": "job_1f2e3d4c5b6a79880011",
                    "status": "queued",
                    "links": {"self": "/v1/jobs/job_1f2e3d4c5b6a79880011"},
                }
            ]
        }
    )

    job_id: str
    status: Status
    links: dict[str, str]


class CancelBody(Body):
    """Why a job shall stop."""

    reason: Annotated[str, StringConstraints(max_length=1_000, pattern=TEXT_WITHOUT_NUL)] = ""


class AnswerBody(Body):
    """The outcome of a tool call that could not be learned."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"outcome": "succeeded", "content": "The mail was sent."}]}
    )

    outcome: Literal["succeeded", "failed", "retry"]
    content: Annotated[str, StringConstraints(max_length=100_000, pattern=TEXT_WITHOUT_NUL)] = Field(
        default="", description="What the tool would have returned, where it succeeded."
    )


class ApprovalBody(Body):
    """A decision on a tool call that waits for a person."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"decision": "approve", "arguments": {"amount": 7}},
                {"decision": "deny", "reason": "Not before the invoice is checked."},
            ]
        }
    )

    decision: Literal["approve", "deny"]
    arguments: dict[str, Any] | None = Field(
        default=None,
        description="What the tool is called with instead, or the answer to what its server asks; checked against the "
        "schema.",
    )
    reason: Annotated[str, StringConstraints(max_length=2_000, pattern=TEXT_WITHOUT_NUL)] = Field(
        default="", description="What the model reads where the call is denied."
    )


class Wait(BaseModel):
    """Something that a parked job needs a person to decide."""

    job_id: str
    agent: str
    why: Literal["approval", "input", "needs_decision"] = Field(
        description="Whether a call may be made, what its tool's server wants to be told (`reason`), or what became "
        "of one whose outcome nobody knows."
    )
    id: str
    tool: str
    arguments: dict[str, Any]
    reason: str = ""
    input_schema: dict[str, Any] | None = Field(default=None, description="Of the answer that an `input` wants.")
    expires_at: datetime | None
    decide: str = Field(description="Where the decision is posted.")


class WaitPage(BaseModel):
    """Decisions that jobs wait for, those of the newest jobs first."""

    approvals: tuple[Wait, ...]
    next_cursor: str | None = None


class BudgetBody(Body):
    """What a job may spend from now on."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"budget_usd": "0.50"}]})

    budget_usd: Dollars


class Signalled(BaseModel):
    """A signal that the bus has stored: the job's executor turns it into an event."""

    job_id: str
    signal: Literal["cancel", "answer", "budget", "approval"]
    links: dict[str, str]


class DocumentBody(Body):
    """A document as text."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"name": "tides.md", "text": "# Tides\n\nThe moon pulls the sea."}]}
    )

    name: Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=ONE_LINE)]
    text: str
    metadata: Metadata = Field(default_factory=dict)
    document_id: ids.JobId | None = Field(default=None, description="Your own id; the same id again replaces it.")
    media_type: Annotated[str, StringConstraints(pattern=r"^text/[a-z0-9.+-]{1,60}$")] | None = Field(
        default=None, description="`text/markdown`, `text/html` …; guessed from the name when left out."
    )


def _decoded(value: Any) -> Any:
    """Decode metadata, which comes as a JSON object in a form's text."""
    if not isinstance(value, str):
        return value
    try:
        return orjson.loads(value or "{}")
    except orjson.JSONDecodeError as error:
        raise ValueError(f"this is not JSON: {error}") from None


class FileFields(Body):
    """What a multipart upload may say beside its `file`."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=ONE_LINE)]
    metadata: Annotated[Metadata, BeforeValidator(_decoded)] = Field(default_factory=dict)
    document_id: ids.JobId | None = None


class SearchFilter(Filter):
    """Which passages may be found at all."""

    metadata: Metadata = Field(default_factory=dict, description="Every pair must be equal in the chunk.")
    document_ids: tuple[Label, ...] = ()


class SearchBody(Body):
    """A question to the knowledge base."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"query": "what moves the sea?", "top_k": 3}]})

    query: Annotated[str, StringConstraints(min_length=1, max_length=10_000, pattern=TEXT_WITHOUT_NUL)]
    mode: Literal["hybrid", "keyword", "vector"] = "hybrid"
    top_k: int = Field(default=10, ge=1, le=200)
    vector_weight: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="The vector leg's share in hybrid: 0 is words alone. null: what the embedding model is worth, 0.5 "
        "for one that understands meaning, less for the lexical one.",
    )
    min_score: float | None = None
    filter: SearchFilter = SearchFilter()


class DeadLetter(BaseModel):
    """A message that could not be handled, and why."""

    sequence: int
    at: datetime | None
    code: str
    reason: str
    stream: str
    consumer: str
    subject: str
    deliveries: int
    bytes: int
    fingerprint: str = Field(description="The same for all that could not be handled for one cause.")


class DeadLetterBody(DeadLetter):
    """A dead letter with its headers and its body."""

    headers: dict[str, str]
    text: str | None = Field(description="The body, where it is text.")
    base64: str | None = Field(description="The body, where it is not.")
    truncated: bool


class DeadLetterPage(BaseModel):
    """Some of the dead letters; `next_cursor` asks for more."""

    dead_letters: tuple[DeadLetter, ...] = Field(description="Newest first.")
    next_cursor: str | None = None


class FailureGroup(BaseModel):
    """Failed jobs and dead letters of one cause."""

    fingerprint: str
    code: str
    message: str = Field(description="Of the newest of them.")
    jobs: int = 0
    letters: int = 0
    example: str | None = Field(default=None, description="The newest job.")
    first_at: datetime | None = None
    last_at: datetime | None = None


class FailureGroupList(BaseModel):
    """What failed, by cause."""

    groups: tuple[FailureGroup, ...] = Field(description="The most frequent first; of the newest 2,000 failed jobs.")


class RedriveBody(Body):
    """Which failed jobs go on."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"fingerprint": "5f2a9c01d7e84b36", "dry_run": True}]})

    fingerprint: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")]
    dry_run: bool = Field(default=False, description="Say what would become of each job; begin nothing.")
    limit: int = Field(default=100, ge=1, le=1_000, description="Of the newest jobs.")


class RedrivenJob(BaseModel):
    """What became of one failed job."""

    job_id: str
    fork_id: str | None = Field(default=None, description="The job that goes on in its place.")
    after: int | None = Field(default=None, description="The last event that both share.")
    outcome: Literal["forked", "already", "refused"]
    reason: str = Field(default="", description="Why it was refused.")


class Redrive(BaseModel):
    """What a redrive began; with `dry_run` what it would begin."""

    fingerprint: str
    dry_run: bool
    jobs: tuple[RedrivenJob, ...]
    more: bool = Field(description="There are more: redrive again.")
    stopped: str | None = Field(default=None, description="Why it stopped before its limit.")


class PastRedrive(BaseModel):
    """Who let failed jobs go on."""

    redrive_id: str
    fingerprint: str
    redriven_by: str
    jobs: int = Field(description="That failed of the cause then.")
    forked: int | None = Field(description="None: it was cut off, and to redrive again is safe.")
    already: int | None
    refused: int | None
    begun_at: datetime
    finished_at: datetime | None


class RedriveList(BaseModel):
    """The redrives of a tenant."""

    redrives: tuple[PastRedrive, ...] = Field(description="Newest first.")


class TenantBody(Body):
    """A tenant to create."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"tenant": "acme"}]})

    tenant: ids.Tenant


class DisableBody(Body):
    """The reason why a tenant is disabled, shown to its callers."""

    reason: Annotated[str, StringConstraints(max_length=REASON_MAX, pattern=ONE_LINE)] = ""


def _in_the_future(moment: datetime) -> datetime:
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    if moment <= datetime.now(UTC):
        raise ValueError("this moment is over; leave it out for a key that does not expire")
    return moment


class KeyBody(Body):
    """An API key to create."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"name": "ci", "tenant": "acme", "scopes": ["read", "write"]}]}
    )

    name: Label = Field(description="Whose or what it is for; jobs and signals say it.")
    tenant: ids.Tenant | None = Field(default=None, description="Left out: the caller's own.")
    scopes: Annotated[tuple[Scope, ...], Field(min_length=1, max_length=len(SCOPES))] = Field(
        default=("read", "write"),
        description="`read`; `write`: jobs and documents; `tools`: the tools of MCP servers over /mcp; `approve`: tool "
        "calls that wait for a person; `admin`: the tenant's agents, models, schedules, budgets, dead letters and "
        "keys; `operator`: all tenants and their keys.",
    )
    expires_at: Annotated[datetime, AfterValidator(_in_the_future)] | None = Field(
        default=None, description="When it stops working; null: when it is revoked."
    )


class Key(BaseModel):
    """What may be shown of an API key."""

    id: str
    prefix: str = Field(description="How the key begins: enough to recognise it.")
    tenant: str
    name: str
    scopes: tuple[Scope, ...]
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None = Field(description="To the minute.")
    revoked_at: datetime | None


class KeyCreated(Key):
    """A key that was just created."""

    key: str = Field(description="The whole key. Nothing can show it again.")


class KeyList(BaseModel):
    """API keys, newest first."""

    keys: tuple[Key, ...]


class KeyRevoked(BaseModel):
    """Whether a key was valid until now."""

    id: str
    revoked: bool


class DismissLetterBody(Body):
    """Why a dead letter needs nothing more."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"reason": "a typo; submitted again as job order-2"}]})

    reason: Annotated[str, StringConstraints(min_length=1, max_length=1_000, pattern=ONE_LINE)]


class DismissedLetter(BaseModel):
    """A dead letter that was dismissed: what it was, why, by whom. Its body is gone."""

    sequence: int
    code: str
    subject: str
    letter_reason: str = Field(description="Why the message could not be handled.")
    reason: str = Field(description="Why it was dismissed.")
    dismissed_by: str
    dismissed_at: datetime


class DismissedLetterList(BaseModel):
    """Dismissed dead letters of the last 30 days, newest first."""

    dismissed: tuple[DismissedLetter, ...]


def links(job_id: str) -> dict[str, str]:
    """Return where everything about a job is."""
    here = f"/v1/jobs/{job_id}"
    return {
        "self": here,
        "events": f"{here}/events",
        "trace": f"{here}/trace",
        "steps": f"{here}/steps",
        "cancel": f"{here}/cancel",
    }


def linked(job: JobView) -> JobView:
    """Return a job with its links."""
    return job.model_copy(update={"links": links(job.job_id)})


class TurnView(BaseModel):
    """A job as a turn of its session."""

    number: int
    after: str | None = Field(description="The job before it; null: the first.")
    job: JobView


class SessionView(Session):
    """A session with some of its turns, newest first; `next_before` asks for more."""

    busy_with: str | None = Field(description="The first job of it that has not ended; null: it is idle.")
    page: tuple[TurnView, ...]
    next_before: int | None
    context: WorkingContext = Field(
        description="What it is about: the entities that its tools declared, and its tools, as its last job knows them."
    )


class Providers(BaseModel):
    """What executors can call: a job goes to any of them, so they should all be configured alike."""

    providers: tuple[Provider, ...] = Field(description="Those that all have, at the same address.")
    executors: tuple[ProviderList, ...] = Field(description="What each of those that answered has.")
