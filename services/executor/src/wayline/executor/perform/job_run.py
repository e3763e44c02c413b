"""One run of a job by its holder: what every performer is given, and what it returns."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from wayline.executor.adapters.attachments import Attachments
from wayline.executor.adapters.budgets import Budgets
from wayline.executor.adapters.children import Children
from wayline.executor.adapters.memories import Memories
from wayline.executor.adapters.model_providers import ModelProviders
from wayline.executor.adapters.permits import Permits
from wayline.executor.adapters.provider_gates import GatePass, ProviderGates
from wayline.executor.adapters.session_histories import SessionHistories
from wayline.executor.adapters.snapshots import Snapshots
from wayline.executor.adapters.tool_registry import ToolRegistry
from wayline.executor.adapters.user_words import UserWordsReader
from wayline.executor.decide.actions import Action
from wayline.executor.decide.children import Limits
from wayline.executor.hold.held_job import HeldJob
from wayline.executor.hold.log_writer import Draft, LogWriter
from wayline.executor.perform.follow_up import FollowUp
from wayline.executor.prompt.assemble import PromptHashes
from wayline.executor.prompt.notes import Notes, silent
from wayline.executor.prompt.shorten import RESULT_TOKENS_MAX
from wayline.sandbox import Sandbox


@dataclass(frozen=True)
class RunServices:
    """What performing an action needs, shared by all jobs of a process."""

    models: ModelProviders
    tools: ToolRegistry
    follow_up: FollowUp
    gates: ProviderGates
    budgets: Budgets
    permits: Permits
    attachments: Attachments
    histories: SessionHistories
    sandbox: Sandbox
    snapshots: Snapshots
    children: Children
    memories: Memories
    user_words: UserWordsReader
    child_limits: Limits
    decision_ttl_s: float
    notes: Notes = silent
    result_tokens_max: int = RESULT_TOKENS_MAX


@dataclass(frozen=True, slots=True)
class OtherAction:
    """What a job needs in the place of an action that cannot be performed now; the log does not tell it."""

    action: Action


Outcome = Iterable[Draft] | OtherAction
"""What a performer returns: the events to note, in order, each made once those before it are folded."""


@dataclass(slots=True)
class JobRun:
    """The one parameter of every performer."""

    services: RunServices
    held: HeldJob
    writer: LogWriter
    hashes: PromptHashes = field(default_factory=PromptHashes)
    attachments_loaded: bool = False
    """What its messages name was loaded once: the job goes on with those bytes, whatever becomes of them."""
    passed: GatePass | None = None
    """Of the call under way: the gate that let it through is told how it ended, once that is noted or has failed."""
    _step: AsyncExitStack | None = None

    @property
    def step(self) -> AsyncExitStack:
        """Return what is to be done and given back once the events of the action under way are noted, or it failed."""
        if self._step is None:
            self._step = AsyncExitStack()
        return self._step

    @property
    def has_borrowed(self) -> bool:
        """Return whether the action under way has something to give back."""
        return self.passed is not None or self._step is not None

    async def end_step(self) -> None:
        """Give back what the action under way has borrowed."""
        passed, self.passed = self.passed, None
        step, self._step = self._step, None
        try:
            if passed is not None:
                await self.services.gates.end(passed)
        finally:
            if step is not None:
                await step.aclose()
