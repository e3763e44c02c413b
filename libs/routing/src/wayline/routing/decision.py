"""What the rules come to, for one job."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from wayline.contracts.events import Away, Candidates
from wayline.contracts.jobs import Route


@dataclass(frozen=True, slots=True)
class Decision:
    """A route, the models the job may use later, and the policy that said so."""

    route: Route
    candidates: Candidates
    policy: str
    first_call_usd: Decimal | None = None
    """What is held for the first call; None: its price is unknown."""
    least_call_usd: Decimal | None = None
    """What is held for it at least, where it gets no more room than it needs."""
    away: tuple[Away, ...] = ()
    """Whom it passed over because nobody could call them."""
