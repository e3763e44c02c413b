"""What calls of a paid tool may charge."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any

from pydantic import Field

from wayline.contracts.base import Frozen, Usd


class ToolCharge(Frozen):
    """The most that one call of a tool charges: it is held for the job before the call is made."""

    usd: Usd = Field(ge=0, description="Where the arguments do not say otherwise.")
    argument: str = Field(default="", description="The argument on which it depends; empty: on none.")
    by_value: dict[str, Annotated[Usd, Field(ge=0)]] = Field(
        default_factory=dict, description="The most where that argument has this value."
    )

    def most(self, arguments: Mapping[str, Any]) -> Decimal:
        """Return the most that a call with these arguments charges."""
        return self.by_value.get(str(arguments.get(self.argument)), self.usd) if self.argument else self.usd
