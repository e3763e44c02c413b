"""Find the recorded calls that a server's new definitions would refuse."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from wayline.contracts.mcp_servers import FailingCall, ToolImpact
from wayline.contracts.tool_use import SHOWN_MAX, RecordedCall
from wayline.schemas import Budget
from wayline.schemas.limits import STEPS_MAX
from wayline.tool_registry.definitions.arguments import Arguments, digest_of
from wayline.tool_registry.definitions.visible_text import visible

Change = Literal["unchanged", "changed", "new", "gone"]

CHECK_STEPS_MAX = 5_000_000
"""Of all recorded calls together, about ten seconds on a thread; the calls after that are unchecked."""
GONE = "the server offers it no more"
REFUSED_BEFORE = frozenset({"unknown_tool", "invalid_arguments", "definition_changed"})
"""Errors of calls that were refused as they were made, so that no change makes them fail."""


@dataclass(frozen=True)
class ToolChange:
    """A tool beside its approved definition."""

    change: Change
    schema: dict[str, Any] | None = None
    """What arguments are compared with, where the tool is new or has changed."""
    unusable: str = ""
    """Why it cannot be called as it is defined."""

    @property
    def touches_calls(self) -> bool:
        """Return whether calls that were made before may fail."""
        return self.change != "unchanged" or bool(self.unusable)


def compared(
    approved: Mapping[str, str], offered: Mapping[str, str], schemas: Mapping[str, dict[str, Any]]
) -> dict[str, ToolChange]:
    """Return how each tool differs from what was approved; both are fingerprints by name."""
    found = {name: ToolChange("gone") for name in approved if name not in offered}
    for name, sha256 in offered.items():
        if approved.get(name) == sha256:
            found[name] = ToolChange("unchanged")
        else:
            found[name] = ToolChange("changed" if name in approved else "new", schemas[name])
    return found


@dataclass
class CallCheck:
    """Compares recorded calls with changed tools, a page at a time."""

    changes: Mapping[str, ToolChange]
    """By our names for the tools."""
    arguments: Arguments
    failing: list[FailingCall] = field(default_factory=list)
    """The first ones of them."""
    failed: Counter[str] = field(default_factory=Counter[str])
    checked: Counter[str] = field(default_factory=Counter[str])

    budget: Budget = field(default_factory=lambda: Budget(CHECK_STEPS_MAX))
    """Of all calls together."""

    def __post_init__(self) -> None:
        found = {name: self._why_unusable(one) for name, one in self.changes.items()}
        self._unusable = {name: why for name, why in found.items() if why}
        self._digests = {
            name: digest_of(one.schema)
            for name, one in self.changes.items()
            if one.schema is not None and name not in self._unusable
        }

    @property
    def is_over(self) -> bool:
        """Return whether no further call can be compared: those are counted as unchecked."""
        return self.budget.left <= 0

    @property
    def tools(self) -> list[str]:
        """Return the tools whose calls have to be compared."""
        return sorted(name for name, one in self.changes.items() if one.touches_calls)

    def take(self, calls: Iterable[RecordedCall]) -> None:
        """Compare calls, and count those that would fail."""
        for call in calls:
            if self.is_over:
                return
            if call.error in REFUSED_BEFORE:
                self.checked[call.tool] += 1
                continue
            why = self._problem(call)
            if self.is_over or (why is None and call.arguments is None):
                continue
            self.checked[call.tool] += 1
            if why is None:
                continue
            self.failed[call.tool] += 1
            if len(self.failing) < SHOWN_MAX:
                about = call.model_dump(exclude={"arguments", "error"})
                self.failing.append(FailingCall(**about, why=why))

    def impact(self, calls: Mapping[str, int]) -> tuple[ToolImpact, ...]:
        """Return what the change does to each tool; `calls` are the recorded ones, by tool."""
        return tuple(
            ToolImpact(
                tool=name,
                change=one.change,
                calls=calls.get(name, 0),
                would_fail=self.failed[name],
                unchecked=max(0, calls.get(name, 0) - self.checked[name]) if one.touches_calls else 0,
                unusable=visible(self._unusable.get(name, "")),
            )
            for name, one in sorted(self.changes.items())
        )

    def _why_unusable(self, one: ToolChange) -> str:
        """Return why a tool cannot be called as it is defined; empty: it can, or it is gone."""
        if one.unusable or one.schema is None:
            return one.unusable
        problem = self.arguments.check_schema(one.schema)
        return f"its schema {problem}" if problem else ""

    def _problem(self, call: RecordedCall) -> str | None:
        one = self.changes[call.tool]
        if problem := self._unusable.get(call.tool):
            return problem
        if one.schema is None:
            return GONE
        if call.arguments is None:
            return None
        budget = Budget(min(STEPS_MAX, self.budget.left))
        why = self.arguments.problem(one.schema, call.arguments, digest=self._digests[call.tool], budget=budget)
        self.budget.left -= budget.spent
        return why
