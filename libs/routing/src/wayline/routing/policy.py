"""What the router decides by, as data: which work goes to which tier, and what complexity moves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any, Literal

from pydantic import ConfigDict, Field

from wayline.contracts.base import Frozen
from wayline.contracts.jobs import Complexity
from wayline.contracts.models import Slot, Tier
from wayline.routing.complexity import Boundary, Classifier
from wayline.routing.complexity import bundled as classifier

SLOT_OF: Mapping[Tier, Slot] = {
    "flash": "fast",
    "standard": "primary",
    "premium": "escalation",
    "reasoning": "reasoning",
}
TIER_OF: Mapping[Slot, Tier] = {slot: tier for tier, slot in SLOT_OF.items()}

DATA = ("policy.json", "complexity/lexicons.json", "complexity/weights.json")

Level = Literal["simple", "moderate", "complex"]


class Policy(Frozen):
    """A way to decide, by name and version; what it leaves out is as in the bundled one."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    version: int = 1
    digest: str = Field(default="", description="Of everything it decides by, the classifier included.")
    tiers: dict[str, Tier] = Field(description="The tier of each type of task.")
    aliases: dict[str, str] = Field(
        default_factory=dict, description="Other names of types of task, each with the name that `tiers` has for it."
    )
    unknown: Tier = Field(
        default="standard", description="The tier of work that nobody has named, or by a name that nobody knows."
    )
    moves: dict[Literal["unknown", "flash", "standard", "premium", "reasoning"], dict[Level, Slot]] = Field(
        default_factory=dict, description="Where complexity moves work of a tier; of unknown work apart."
    )
    sure: float = Field(default=0.7, description="The content from which on complexity moves work of a known type.")
    reasoning: bool = Field(default=True, description="Whether the reasoning slot is used where an agent has one.")
    locked: bool = Field(default=False, description="Every agent is taken for one that is locked to its primary.")
    levels: dict[Boundary, float] | None = Field(
        default=None, description="`moderate`: the score, `complex`: the content from which on a level begins."
    )
    reasoning_min: float | None = Field(default=None, description="The score from which on reasoning may be needed.")
    weights: dict[str, float] | None = Field(default=None, description="Other weights of the classifier's features.")

    @property
    def label(self) -> str:
        """Return `name/version+digest`, as a decision records it."""
        return f"{self.name}/{self.version}" + (f"+{self.digest}" if self.digest else "")

    def tier_of(self, task_type: str) -> Tier | None:
        """Return the tier of a type of task, by its own name or another one; None: the policy knows no such type."""
        name = task_name(task_type)
        return self.tiers.get(name) or self.tiers.get(self.aliases.get(name, ""))

    def assess(self, text: str) -> Complexity:
        """Return how hard a text is, by this policy's levels and weights."""
        known = classifier()
        if self.levels is self.reasoning_min is self.weights is None:
            return known.assess(text)
        return self._adjusted(known).assess(text)

    def _adjusted(self, known: Classifier) -> Classifier:
        return known.adjusted(levels=self.levels, reasoning_min=self.reasoning_min, weights=self.weights)


def task_name(task: str) -> str:
    """Return a type of task as the policy writes it: `Contract review` is `contract_review`."""
    return "_".join(task.lower().replace("-", " ").replace("_", " ").split())


@cache
def current_policy() -> Policy:
    """Return the one that decides."""
    return Policy.model_validate(_bundled() | {"digest": _digest()})


def named_policy(name: str) -> Policy | None:
    """Return a policy that everybody has, to compare with."""
    one_tier = {"name": name, "digest": "", "tiers": {}, "moves": {}, "reasoning": False}
    changes: Mapping[str, Mapping[str, Any]] = {
        "current": {},
        "locked": {"name": name, "digest": "", "locked": True},
        "all-standard": one_tier | {"unknown": "standard"},
        "all-premium": one_tier | {"unknown": "premium"},
    }
    return current_policy().model_copy(update=changes[name]) if name in changes else None


def policy_with(name: str, overrides: Mapping[str, Any]) -> Policy:
    """Return the bundled policy with some of it said otherwise. Raises pydantic's ValidationError."""
    known = _bundled()
    merged = {part: known[part] | overrides[part] for part in ("tiers", "aliases", "moves") if part in overrides}
    return Policy.model_validate(known | dict(overrides) | merged | {"name": name})


def _digest() -> str:
    """Hash all data of the policy, so that no two policies go by one name."""
    data = (files("wayline.routing").joinpath(*path.split("/")).read_bytes() for path in DATA)
    return sha256(b"".join(data)).hexdigest()[:8]


def _bundled() -> dict[str, Any]:
    return json.loads(files("wayline.routing").joinpath("policy.json").read_text())
