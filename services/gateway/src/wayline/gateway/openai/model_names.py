"""What `model` names in a request of OpenAI's: an agent, or the version of it that has a label. Pure."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from wayline.contracts.errors import Reject
from wayline.contracts.ids import NAME_PATTERN

BEFORE_LABEL: Final = ":"
"""In no name of an agent or label."""
AGENT_MAX: Final = 64
"""Characters of an agent's name."""


class NamedModel(NamedTuple):
    """An agent, and by which label its version is asked for."""

    agent: str
    label: str | None = None

    def __str__(self) -> str:
        """Return the name as a request has it."""
        return self.agent if self.label is None else f"{self.agent}{BEFORE_LABEL}{self.label}"


def named_model(model: str) -> NamedModel:
    """Return what a request's `model` names. Raises Reject for what can be no agent or no label."""
    agent, separator, label = model.partition(BEFORE_LABEL)
    if not 0 < len(agent) <= AGENT_MAX:
        reason = f"no agent is named {agent!r}: GET /openai/v1/models lists those there are"
        raise Reject(reason, code="unknown_agent", status=404)
    if not separator:
        return NamedModel(agent)
    if re.fullmatch(NAME_PATTERN, label) is None:
        raise unknown_label(agent, label)
    return NamedModel(agent, label)


def unknown_label(agent: str, label: str) -> Reject:
    """Return the refusal of a label that no version of an agent has."""
    reason = f"no version of agent {agent!r} has the label {label!r}: GET /openai/v1/models lists those there are"
    return Reject(reason, code="unknown_label", status=404)
