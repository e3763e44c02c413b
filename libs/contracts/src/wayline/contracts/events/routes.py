"""Which model a job is sent to: what was pinned when it was routed, and what changed that later."""

from __future__ import annotations

from functools import cached_property
from typing import Literal, Self

from pydantic import Field

from wayline.contracts.agents import AgentConfig
from wayline.contracts.base import Frozen, Usd
from wayline.contracts.chat import Attachment
from wayline.contracts.events.event import Event
from wayline.contracts.jobs import Route
from wayline.contracts.models import ModelCard, Slot


class Limits(Frozen):
    """What bounds a job, fixed when it was routed."""

    max_steps: int
    max_seconds: float
    max_output_tokens: int
    budget_usd: Usd | None = None
    steps_cap: int | None = Field(
        default=None, description="Of which `max_steps` is the share for its complexity; None: it is the cap itself."
    )
    steps_level: Literal["simple", "moderate", "complex"] | None = Field(
        default=None, description="The complexity that its step limit follows; None: none."
    )
    context_level: Literal["simple", "moderate", "complex"] | None = Field(
        default=None,
        description="The complexity that its context budget follows; None: it has none, or an earlier build decided.",
    )


class Observed(Frozen):
    """What recent jobs of the agent used of a model in a slot."""

    model: str = Field(description="`provider/model`")
    slot: Slot
    jobs: int = Field(ge=1, description="How many were counted.")
    calls: int = Field(ge=1, description="Calls of a job on average, rounded.")
    output_tokens: int = Field(ge=0, description="What a call writes on average, its thinking included.")
    longest_tokens: int = Field(ge=0, description="What the longest call of nearly every job stays below.")
    density: float | None = Field(
        default=None,
        gt=0,
        description="Tokens of a prompt that its provider counts for each estimated one; null: nobody has seen it.",
    )


class ToolsObserved(Frozen):
    """How large the tool definitions of the agent's last job were."""

    count: int = Field(ge=0)
    tokens: int = Field(ge=0, description="Estimated.")


class Candidates(Frozen):
    """Every model a job may use, pinned with its prices when the job was routed."""

    cards: tuple[ModelCard, ...] = ()
    slots: dict[Slot, str] = Field(default_factory=dict, description="`provider/model` of each slot that has one.")
    fallbacks: tuple[str, ...] = ()
    tasks: dict[str, Route | None] = Field(
        default_factory=dict,
        description="The types of task that the route's classifier may name, and the route of each; None: it stays. "
        "Empty: nobody is asked.",
    )
    observed: tuple[Observed, ...] = Field(
        default=(), description="What the agent's recent jobs used of these models: the prediction rests on it."
    )
    tools: ToolsObserved | None = Field(default=None, description="None: no job of the agent has been seen lately.")

    def card(self, name: str) -> ModelCard | None:
        """Return the card of a `provider/model`."""
        return self._by_name.get(name)

    def observed_on(self, name: str, slot: Slot) -> Observed | None:
        """Return what the agent's recent jobs used of a `provider/model` in a slot; None where too few did."""
        return next((one for one in self.observed if (one.model, one.slot) == (name, slot)), None)

    def density_of(self, name: str) -> float | None:
        """Return how dense the provider of a `provider/model` counted the agent's prompts, in the slot it had most."""
        seen = [one for one in self.observed if one.model == name and one.density is not None]
        return max(seen, key=lambda one: one.jobs).density if seen else None

    def __copy__(self) -> Self:
        # A copy may be given other cards: it looks them up anew.
        copied = super().__copy__()
        vars(copied).pop("_by_name", None)
        return copied

    @cached_property
    def _by_name(self) -> dict[str, ModelCard]:
        return {card.name: card for card in reversed(self.cards)}


class Warm(Frozen):
    """What the last job of a session left in a provider's cache."""

    model: str = Field(description="`provider/model`")
    prefix_tokens: int = Field(ge=0)


class Away(Frozen):
    """A model that was passed over for a slot, because it could not be called at that moment."""

    slot: Slot
    model: str = Field(description="`provider/model`")
    why: str = Field(description="A clause about the model: `keeps failing`.")


class StartableAgent(Frozen):
    """An agent that a job may start, as its model is told of it."""

    name: str
    description: str = ""


class JobRouted(Event):
    """The agent's version, the model and the limits of a job: fixed here, whatever is saved later."""

    type: Literal["job.routed"] = "job.routed"
    agent: str
    agent_version: int
    agent_label: str | None = Field(
        default=None, description="By which the version was chosen; None: it was the newest, or its origin's."
    )
    config: AgentConfig
    route: Route
    limits: Limits
    candidates: Candidates = Candidates()
    policy: str = Field(default="", description="The policy that decided, by name and version.")
    left_usd: Usd | None = Field(default=None, description="What the budgets left for the job; None: no budget.")
    held_usd: Usd | None = Field(default=None, description="What was held for the job at once; None: no budget.")
    warm: Warm | None = None
    attachments: tuple[Attachment, ...] = Field(
        default=(), description="The documents that its messages and its agent name, by the bytes they had then."
    )
    agents: tuple[StartableAgent, ...] = Field(default=(), description="The agents that it may start.")
    away: tuple[Away, ...] = Field(default=(), description="Models that could not be called then, by slot.")


class JobRerouted(Event):
    """Another model goes on with the job, from the next call on."""

    type: Literal["job.rerouted"] = "job.rerouted"
    route: Route
    cause: Literal["escalation", "fallback", "budget", "classification"]


class TaskClassified(Event):
    """What came of asking which type of task a job is."""

    type: Literal["task.classified"] = "task.classified"
    task_type: str | None = Field(description="None: it stays unknown, and the route as it is.")
    reason: str = Field(default="", description="Why it stays unknown.")
