"""Void a call whose job ends: one that has not begun never begins, and an unknown outcome stays unknown."""

from __future__ import annotations

from wayline.contracts.tools import ToolReply
from wayline.tool_registry.calls.bound_tool import BoundTool
from wayline.tool_registry.calls.effect_call import EffectCall
from wayline.tool_registry.calls.ledger import Lease, NextStep, Row, next_step
from wayline.tool_registry.calls.results import failed


class VoidCall(EffectCall):
    """Leads one key to an outcome in the ledger without ever calling its tool.

    A key without a row gets a finished one: a late request finds it and does not act. A row with a live lease is
    waited for. For one without, a `reconcile` tool is asked for the outcome; for any other tool it is unknown.
    """

    async def _begin(self) -> Lease | ToolReply | None:
        never = failed("cancelled", "it had not begun", begun=False)
        return never if await self._ledger.void(self._ask, never) else None

    def _require_same(self, row: Row) -> None:
        """Pass: whatever was asked for under the key ends."""

    async def _by(self, row: Row) -> ToolReply | Lease | None:
        match next_step(row, attempts_max=self._attempts_max):
            case NextStep.AGAIN | NextStep.GIVE_UP | NextStep.LOSE | NextStep.UNKNOWN:
                return await self._lost(row)
            case _:
                return await super()._by(row)

    async def _lost(self, row: Row) -> ToolReply | None:
        """Finish a row whose holder is gone; None: an outcome came meanwhile."""
        ask = self._ask
        lost = failed("cancelled", "it is not known whether it took effect", effect=row.effect, attempts=row.attempt)
        return lost if await self._ledger.lose(ask.tenant, ask.key, lost) else None

    async def _execute(self, bound: BoundTool, lease: Lease, *, again: bool) -> ToolReply | None:
        outcome = await self._run(bound.ask_outcome(self._ask, attempt=lease.attempt))
        return outcome or failed(
            "cancelled", "it had no effect", begun=False, effect=bound.tool.effect, attempts=lease.attempt
        )
