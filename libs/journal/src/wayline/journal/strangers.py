"""Whose words a tool's result holds: one rule for the fold, which taints, and the prompt, which frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from wayline.contracts.tools import ToolDefinition

if TYPE_CHECKING:
    from wayline.contracts import events as e
    from wayline.journal.state import Job

Words = Literal["trusted", "strangers"]

OURS = frozenset({"unknown_tool", "definition_changed"})
"""Errors that only this platform words; of logs of earlier builds, which do not say whose words a result holds."""


def words_of(definition: ToolDefinition | None, *, strangers: bool | None = None) -> Words | None:
    """Return whose words a result holds, None: its tool's, which is trusted.

    `strangers`: what is known of the result beside the definition of its tool. A tool that the job was never told of
    may be anybody's.
    """
    trusted = definition is not None and not definition.untrusted
    if strangers or (strangers is None and not trusted):
        return "strangers"
    return None if trusted else "trusted"


def stranger_of(job: Job, event: e.ToolCompleted) -> str | None:
    """Return the tool whose strangers' words a result holds; None: it holds none."""
    if event.child is not None and event.child.tainted_by:
        return event.child.tainted_by
    if event.words is not None:
        return event.tool if event.words == "strangers" else None
    if event.child is not None or (event.error is not None and event.error.code in OURS):
        return None
    definition = job.tools.definition(event.tool)
    return event.tool if definition is not None and definition.untrusted else None
