"""Looks every so often for held charges of tools that no job counts any more."""

from __future__ import annotations

import structlog

from wayline.chassis import Periodic
from wayline.router.money.budget_table import BudgetTable

log = structlog.get_logger()

LOOK_EVERY_S = 600.0
LOST_AFTER_S = 24 * 3600.0
"""How old a charge is that a gateway would have counted, had it lived: longer than any call."""
AT_MOST = 1_000


class LostCharges:
    """Settles charges whose gateway was killed before it counted them."""

    def __init__(self, budgets: BudgetTable) -> None:
        self._budgets = budgets
        self._periodic = Periodic("charges of tools", self._look, every_s=LOOK_EVERY_S)
        self.start = self._periodic.start
        self.stop = self._periodic.stop

    async def _look(self) -> None:
        if lost := await self._budgets.settle_lost(after_s=LOST_AFTER_S, at_most=AT_MOST):
            log.warning("charges of tools were held and never counted: they are unsettled now", charges=lost)
