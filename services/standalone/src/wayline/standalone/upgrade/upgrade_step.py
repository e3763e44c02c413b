"""What an upgrade has to do, or what stands in its way."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

StepKind: TypeAlias = Literal["blocked", "unknown", "note", "rights", "migrate", "streams", "restart"]
"""In the order in which they are to be done; what comes before `rights` is nothing to do.

`unknown` is what could not be looked at, so that the check cannot say that nothing is left; `note` holds up nothing.
"""


@dataclass(frozen=True)
class UpgradeStep:
    """One thing to do, what for, and how."""

    kind: StepKind
    text: str
    todo: str

    def as_dict(self) -> dict[str, Any]:
        """Return the step for `--json`."""
        return asdict(self)


UpgradeSteps: TypeAlias = AsyncIterator[UpgradeStep]
