"""The services that a run works with."""

from __future__ import annotations

from dataclasses import dataclass

from wayline.executor.adapters.attachments import Attachments
from wayline.executor.adapters.budgets import Budgets
from wayline.executor.adapters.model_providers import ModelProviders
from wayline.executor.adapters.provider_gates import ProviderGates
from wayline.executor.adapters.tool_registry import ToolRegistry
from wayline.executor.perform.follow_up import FollowUp
from wayline.executor.prompt.notes import Notes, silent
from wayline.executor.prompt.shorten import RESULT_TOKENS_MAX


@dataclass(frozen=True)
class RunServices:
    """What performing an action needs, shared by all jobs of a process."""

    models: ModelProviders
    tools: ToolRegistry
    follow_up: FollowUp
    gates: ProviderGates
    budgets: Budgets
    files: Attachments
    decision_ttl_s: float
    notes: Notes = silent
    result_tokens_max: int = RESULT_TOKENS_MAX
