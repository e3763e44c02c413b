"""What a call of the embedding provider costs, and who is told of it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, Protocol

from wayline.contracts.money import usd

Outcome = Literal["answered", "refused", "lost"]
"""`refused` outright, so nothing is billed; `lost`: nobody knows what the provider did."""

MILLION = Decimal(1_000_000)
WIRE_TOKENS_MAX = 16
"""What a provider adds to a text."""


@dataclass(slots=True)
class PaidCall:
    """One call while it is made."""

    charge_id: str
    attempt_id: str
    """Sent along as a header, so that a provider's bill can be matched with the ledger."""
    outcome: Outcome = "lost"
    input_tokens: int = 0

    def answered(self, input_tokens: int | None) -> None:
        """Note that the provider has answered; without a count nobody knows what it bills."""
        if input_tokens is not None:
            self.outcome, self.input_tokens = "answered", input_tokens

    def refused(self) -> None:
        """Note that the provider has refused, or was never reached."""
        self.outcome = "refused"


class Payer(Protocol):
    """Pays for calls of the embedding provider."""

    def paying(self, texts: Sequence[str]) -> AbstractAsyncContextManager[PaidCall]:
        """Make one call within. Raises NoBudget where a hard budget has no room for it."""
        ...


class Account(Payer, Protocol):
    """What pays for one document or one query of a tenant."""

    async def hand_over(self) -> Decimal | None:
        """Leave the report of what was paid to the caller; returns the sum, None where it stays here."""
        ...


class Accounts(Protocol):
    """The accounts of all tenants."""

    def account(
        self, tenant: str, *, holds: bool, model: str | None = None, caller_pays: bool = False
    ) -> Account | None:
        """Return what pays for a tenant's calls; None where they cost nothing.

        `holds`: only calls are made that every hard budget has room for. `model`: another one than the settings'.
        `caller_pays`: what is paid may be handed over, and is not reported before.
        """
        ...


class NoAccounts:
    """No tenant pays: the embedding model is free."""

    def account(
        self, tenant: str, *, holds: bool, model: str | None = None, caller_pays: bool = False
    ) -> Account | None:
        """Return None: there is nothing to pay."""
        return None


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars per million tokens; None: nobody has said."""

    usd_per_mtok: Decimal | None

    @property
    def free(self) -> bool:
        return self.usd_per_mtok == 0

    def of(self, tokens: int) -> Decimal | None:
        return None if self.usd_per_mtok is None else usd(tokens * self.usd_per_mtok / MILLION)

    def worst(self, texts: Sequence[str]) -> Decimal | None:
        """Return the most that embedding these texts costs: a token is at least a byte."""
        return self.of(sum(len(text.encode(errors="replace")) + WIRE_TOKENS_MAX for text in texts))
