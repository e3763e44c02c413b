"""What jobs planned, stored by retrieval for later plans."""

from __future__ import annotations

import structlog

from wayline.chassis import Bus, keep_trying
from wayline.contracts.errors import Reject
from wayline.contracts.task_graphs import TaskGraphSaved
from wayline.executor.decide.planned_graph import planned_graph
from wayline.journal import Job

log = structlog.get_logger()

WAIT_S = 20.0
"""How long retrieval is waited for; after that the job's ticket comes again, and stores the same."""


class TaskGraphs:
    """Stores the plan of a job that has ended; it may be asked again."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def save(self, job: Job) -> None:
        """Store what a job planned, if it did. Raises Retry while retrieval is away."""
        asked = planned_graph(job)
        if asked is None:
            return
        try:
            await keep_trying("store a plan", lambda: self._bus.ask(asked, TaskGraphSaved), within_s=WAIT_S)
        except Reject as error:
            # The job has its result; later plans do without this one.
            log.warning("a plan is not stored", job=job.job_id, why=str(error))
