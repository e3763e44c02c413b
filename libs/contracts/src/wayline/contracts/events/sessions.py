"""How a job goes on with its session: the history that its prompts begin with, pinned when its turn has come."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from wayline.contracts.base import Frozen
from wayline.contracts.chat import Attachment, UserMessage
from wayline.contracts.events.event import Event
from wayline.contracts.events.model_calls import Segment
from wayline.contracts.tools import ToolDefinition
from wayline.contracts.working_context import WorkingContext


class HistoryEnd(Frozen):
    """Where a history ends: it is read from the log of that job and of those that it continued."""

    job_id: str
    seq: int = Field(ge=1, description="The last event of that job's log.")
    hash: str = Field(description="Of all messages of the history.")
    without_refused: bool = Field(
        default=False, description="Whether turns that their model refused were left out: earlier builds kept them."
    )


class SessionCall(Frozen):
    """The last model call before a job, which its first call continues."""

    at: datetime
    provider: str
    model: str
    prefix: tuple[Segment, ...] = ()


class SessionContinued(Event):
    """The job's turn has come: its prompts begin with messages that stand in the logs of the jobs before it."""

    type: Literal["session.continued"] = "session.continued"
    after: HistoryEnd | None = Field(default=None, description="None: nothing was said before, or it is lost.")
    lost: str | None = Field(default=None, description="Why what was said before is not there.")
    messages: int = Field(default=0, ge=0, description="How many messages the history has.")
    tokens: int | None = Field(default=None, description="What its provider counted at its end; None: it did not.")
    call: SessionCall | None = None
    density: float | None = Field(
        default=None,
        gt=0,
        description="Tokens that its provider counted there for each estimated one; null: none, or another model.",
    )
    unbound: bool = Field(
        default=False, description="Providers' own blocks are left out: another agent or model goes on."
    )
    agent_changed: bool = Field(default=False, description="It was another agent, or another version of it.")
    tools: tuple[ToolDefinition, ...] | None = Field(
        default=None, description="The tools of every prompt, as they were; None: they are listed anew."
    )
    discovered: tuple[ToolDefinition, ...] = Field(
        default=(), description="Tools that were found before, as far as the agent may use them; also without `tools`."
    )
    deferred_tokens: int = Field(
        default=0, description="Estimated tokens of the definitions that `tools` leaves to be found."
    )
    context: WorkingContext = Field(
        default=WorkingContext(), description="What the conversation is about; there also where its history is lost."
    )
    attachments: tuple[Attachment, ...] = Field(default=(), description="The documents that the history names.")
    tainted_by: str | None = Field(
        default=None, description="The first untrusted tool whose words the history has: the job begins tainted."
    )


class SessionSteered(Event):
    """A later job of the session has words for this one. The next `model.requested` says them; without one, nobody."""

    type: Literal["session.steered"] = "session.steered"
    by: str = Field(description="The later job.")
    message: UserMessage


class SessionHandedOver(Event):
    """The job's words were said in a job that was running: it has nothing to do itself."""

    type: Literal["session.handed_over"] = "session.handed_over"
    to: str = Field(description="The job that said them.")
