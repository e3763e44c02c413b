"""All that a routing decision rests on beside the models."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from wayline.contracts.agents import AgentConfig
from wayline.contracts.chat import Attachment, TextPart
from wayline.contracts.events import Observed, ToolsObserved, Warm
from wayline.contracts.jobs import Complexity, SubmitJob
from wayline.contracts.models import ModelCard
from wayline.llm import media
from wayline.routing.estimate import Level, Shape, shape_of
from wayline.routing.policy import Policy, current_policy
from wayline.routing.slots import Needs, needs_of
from wayline.routing.step_limit import adapts


@dataclass(slots=True)
class Assessed:
    """How complex a text looked to a policy when it was first read; copies of an input share it."""

    policy: Policy | None = None
    text: str = ""
    complexity: Complexity | None = None


@dataclass(frozen=True, slots=True)
class RoutingInput:
    """All that a decision rests on beside the models: what a job asks of its route, and what it is given for it."""

    job: SubmitJob
    config: AgentConfig
    policy: Policy = field(default_factory=current_policy)
    left_usd: Decimal | None = None
    """What the budgets that are set leave."""
    cap_usd: Decimal | None = None
    """What any job may cost: it keeps no unknown price out."""
    warm: Warm | None = None
    attachments: tuple[Attachment, ...] = ()
    """The documents that the job and its agent name."""
    observed: tuple[Observed, ...] = ()
    """What the agent's recent jobs used, by model and slot."""
    tools: ToolsObserved | None = None
    """How large the tool definitions of its last job were."""
    steps_max: int | None = None
    """The job's step limit as its log records it; None: it is being decided."""
    classified: str | None = None
    """The type of task as a model takes it, where neither the job nor its agent says one."""
    default_model: str | None = None
    """Of the tenant's settings: it takes the job where neither job nor agent names a model."""
    assessed: Assessed = field(default_factory=Assessed, repr=False, compare=False)

    @property
    def own_usd(self) -> Decimal | None:
        """Return what the job may cost."""
        return _least(self.job.options.budget_usd, self.cap_usd)

    @property
    def spendable_usd(self) -> Decimal | None:
        """Return what is left of the tightest budget, the job's own among them."""
        return _least(self.left_usd, self.own_usd)

    @property
    def priced_only(self) -> bool:
        """Return whether a limit is set that a model of unknown price cannot keep."""
        return self.left_usd is not None or self.job.options.budget_usd is not None

    @property
    def needs(self) -> Needs:
        """Return what a model must take to do the job at all."""
        return needs_of(
            self.job, self.config, kept_tokens=self.kept_tokens, attachments=self.attachments, tools=self.tools
        )

    @property
    def kept_tokens(self) -> int:
        """Return tokens that the session's last job left in a provider's cache."""
        return self.warm.prefix_tokens if self.warm else 0

    @property
    def text(self) -> str:
        """Return the words of the job's input."""
        return "\n".join(self._texts)

    @property
    def last_text(self) -> str:
        """Return the last of the texts: what stands before it is what it is about, or how to answer it."""
        return next((text for text in reversed(self._texts) if text.strip()), "")

    @property
    def _texts(self) -> list[str]:
        return [part.text for part in self.job.parts() if isinstance(part, TextPart)]

    @property
    def task_type(self) -> str | None:
        """Return what type of task it is, by the first who says so; None: nobody does."""
        return self.job.options.task_type or self.config.task_type or self.classified

    @property
    def complexity(self) -> Complexity:
        """Return how hard the job's last text looks. It is read once, when it is first asked for."""
        known, text = self.assessed, self.last_text
        if known.complexity is None or known.policy is not self.policy or known.text != text:
            known.policy, known.text, known.complexity = self.policy, text, self.policy.assess(text)
        return known.complexity

    @property
    def steps_level(self) -> Level | None:
        """Return the complexity that the job's step limit follows; None: it follows none."""
        return self.complexity.level if adapts(self.job, self.config) else None

    @property
    def context_level(self) -> Level | None:
        """Return the complexity that the job's context budget follows; None: it has none."""
        return self.complexity.level if self.config.context == "budgeted" else None

    def shape(self, level: Level = "moderate") -> Shape:
        """Return how large the job's calls are expected to be."""
        return shape_of(
            self.job,
            self.config,
            level=level,
            steps_max=self.steps_max,
            steps_level=self.steps_level,
            kept_tokens=self.kept_tokens,
            cap_usd=self.own_usd,
            attachments=self.attachments,
            observed=self.observed,
            tools=self.tools,
        )

    def cached_tokens(self, card: ModelCard) -> int:
        """Return how much of the first prompt this model's provider still keeps: what is pinned follows the prefix."""
        if self.warm is None or self.warm.model != card.name:
            return 0
        return self.warm.prefix_tokens + media.parts_tokens(card, self.config.pinned, self.attachments)


def _least(*several: Decimal | None) -> Decimal | None:
    return min((usd for usd in several if usd is not None), default=None)
