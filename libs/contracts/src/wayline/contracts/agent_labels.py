"""Labels of agents' versions: names such as `production`, which jobs ask for, and by which a share of jobs is given."""

from __future__ import annotations

from typing import Final

from pydantic import ConfigDict, Field

from wayline.contracts.base import Frozen, Request
from wayline.contracts.ids import Name

DEFAULT_LABEL: Final = "production"
"""What has it takes the jobs that ask for no label and are in no share."""
LABELS_MAX: Final = 20
"""Of an agent."""


class LabelConfig(Frozen):
    """The version that has a label, and how many of the jobs go there that ask for none."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: int = Field(ge=1, le=2**31 - 1)
    share: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="Of the jobs that ask for no label, such as 0.1; null: none of them. What is left goes to "
        "`production`, or to the newest version where no version has that label. `production` itself takes no share.",
    )


class AgentLabel(LabelConfig):
    """A label of an agent."""

    label: Name


class PutAgentLabel(Request, subject="agents.label.{tenant}", replies=AgentLabel):
    """Give a version of an agent a label, which another one had until now."""

    terse = True

    name: Name
    label: Name
    config: LabelConfig


class LabelRemoved(Frozen):
    """Whether there was such a label."""

    deleted: bool


class DeleteAgentLabel(Request, subject="agents.unlabel.{tenant}", replies=LabelRemoved):
    """Take a label from an agent: jobs that ask for it are refused from now on."""

    name: Name
    label: Name
