"""What a user said in jobs that have ended, read from their logs, one after the other."""

from __future__ import annotations

from wayline.chassis import Bus
from wayline.contracts.jobs import Extraction
from wayline.executor.decide.extraction import Conversation, UserWords, words_of_job
from wayline.journal import JobLog, folded


class UserWordsReader:
    """Reads logs of other jobs of a job's user."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def read(self, tenant: str, user_id: str, extraction: Extraction) -> Conversation:
        """Return the user's words, and what taints them; a log that is gone or another user's is passed over.

        Raises Retry.
        """
        words: list[UserWords] = []
        tainted_by: dict[str, None] = {}
        for job_id in extraction.jobs:
            jobs = JobLog(self._bus, tenant, job_id)
            head = await jobs.last()
            if head is None:
                continue
            job = await folded(jobs, head)
            said = words_of_job(job, user_id=user_id)
            if said is None:
                continue
            words.append(said)
            if job.tools.tainted_by is not None:
                tainted_by[job.tools.tainted_by] = None
        return Conversation(tuple(words), tuple(tainted_by))
