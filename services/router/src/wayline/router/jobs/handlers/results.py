"""Returns how the newest run of an agent by a user ended."""

from __future__ import annotations

from wayline.contracts.errors import NotFound
from wayline.contracts.jobs import GetLatestRun, RunResult
from wayline.router.jobs.result_table import ResultTable


class ResultHandlers:
    """Answers requests for results."""

    def __init__(self, table: ResultTable) -> None:
        self._table = table

    async def on_get_latest(self, request: GetLatestRun) -> RunResult:
        """Return a user's newest run of an agent. Raises NotFound."""
        found = await self._table.get(request.tenant, agent=request.agent, user_id=request.user_id)
        if found is None:
            raise NotFound("run of this agent by user", request.user_id)
        return found
