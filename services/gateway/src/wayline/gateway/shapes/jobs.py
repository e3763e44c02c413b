"""Bodies about jobs."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from wayline.contracts import ids
from wayline.contracts.jobs import EarlierMessage, JobInput, JobOptions, JobView, Status, ToolResult
from wayline.contracts.jobs.client_tools import RESULTS_MAX
from wayline.contracts.jobs.submission import HISTORY_MESSAGES_MAX
from wayline.contracts.money import Dollars
from wayline.gateway.shapes.body import ONE_LINE, TEXT_WITHOUT_NUL, Body, Label


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
    input: JobInput = Field(
        description="Text; an object, which is told as its JSON; or parts: text, image, file by document id."
    )
    job_id: ids.NewJobId | None = Field(default=None, description="Your own id; the same id is the same job.")
    history: Annotated[tuple[EarlierMessage, ...], Field(max_length=HISTORY_MESSAGES_MAX)] = Field(
        default=(),
        description="What was said before, where you keep the conversation yourself; not together with `session_id`.",
    )
    session_id: Label | None = None
    user_id: Label | None = None
    options: JobOptions = JobOptions()

    @model_validator(mode="after")
    def _have_one_past(self) -> Self:
        if self.history and self.session_id is not None:
            raise ValueError("the session keeps what was said before: leave out history or session_id")
        return self


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


class BudgetBody(Body):
    """What a job may spend from now on."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"budget_usd": "0.50"}]})

    budget_usd: Dollars


class ResultsBody(Body):
    """What tools returned that the job's caller runs itself."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"results": [{"key": "default/j1/1/1", "content": "12 degrees, rain"}]}]}
    )

    results: Annotated[tuple[ToolResult, ...], Field(min_length=1, max_length=RESULTS_MAX)]


class Signalled(BaseModel):
    """A signal that the bus has stored: the job's executor turns it into an event."""

    job_id: str
    signal: Literal["cancel", "answer", "budget", "approval", "tool_results"]
    links: dict[str, str]


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
