"""Reads what later jobs of a session have to say to a held job."""

from __future__ import annotations

from collections.abc import Iterable

import structlog

from wayline.chassis import Bus
from wayline.contracts.chat import UserMessage
from wayline.journal import Head, Job, JobLog, State, fold

log = structlog.get_logger()

WORDS_MAX_BYTES = 256 * 1024
"""Of later jobs, said in one call; what is more waits for a turn of its own."""


async def read_words(bus: Bus, job: Job, by: Iterable[str]) -> dict[str, UserMessage]:
    """Return the words of later jobs of the session that wait for this job to take them, by job.

    Only what their own logs hold counts: anybody in the tenant may signal.
    """
    room = WORDS_MAX_BYTES - sum(_size(event.message) for event in job.conversation.steering)
    known = known_speakers(job)
    words: dict[str, UserMessage] = {}
    for job_id in dict.fromkeys(by):
        message = None if job_id in known else await _words(bus, job, job_id)
        if message is None:
            continue
        room -= _size(message)
        if room < 0:
            log.info("a job's words wait for their turn", job=job.job_id, by=job_id, why="too many at once")
            break
        words[job_id] = message
    return words


def known_speakers(job: Job) -> set[str]:
    """Return the later jobs whose words the job has."""
    return {*job.session.steered_by, *(event.by for event in job.conversation.steering)}


async def _words(bus: Bus, job: Job, job_id: str) -> UserMessage | None:
    jobs = JobLog(bus, job.tenant, job_id)
    head = await jobs.last()
    if head is None or not is_for(head, job.job_id):
        return None
    later = fold(head.events[:1] if head.epoch == 0 else (await jobs.first())[:1])
    if _who(later) != _who(job):
        return None
    [message] = later.conversation.messages
    return message if isinstance(message, UserMessage) else None


def is_for(head: Head, job_id: str) -> bool:
    """Return whether a job waits for this one to take its words, as its last record says."""
    if head.state is not State.PARKED:
        return False
    last = head.values[-1]
    return last["type"] == "job.parked" and last["waiting"].get("into") == job_id


def _who(job: Job) -> tuple[str | None, ...]:
    """Return in whose name a job speaks, and with whom."""
    submitted = job.life.submitted
    return (submitted.session_id, submitted.agent, submitted.user_id) if submitted else ()


def _size(message: UserMessage) -> int:
    return len(message.__pydantic_serializer__.to_json(message))
