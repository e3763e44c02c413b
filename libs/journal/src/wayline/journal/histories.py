"""The histories of sessions: what a job hands on to the next one, and how a pinned history is read from the logs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b

from pydantic import ValidationError

from wayline.chassis import Bus
from wayline.contracts.base import explain
from wayline.contracts.chat import AssistantMessage, ChatMessage, ToolMessage
from wayline.contracts.errors import Retry
from wayline.contracts.events import HistoryEnd, JobFailed, read_event
from wayline.journal.folding import fold
from wayline.journal.folding.conversation import unbound
from wayline.journal.log import JobLog
from wayline.journal.record import Head, unknown_types
from wayline.journal.state import Job

HASH_BYTES = 16
CHAIN_MAX = 1_000
"""Jobs of one session that are read for a history, or passed over because they said nothing."""
HISTORY_MAX_BYTES = 32 * 1024 * 1024
"""Of one history, as JSON: a longer one is given up."""
NEWER_RETRY_S = 5.0
"""How soon a job is offered again whose history has events of a newer build."""

History = tuple[ChatMessage, ...]


class HistoryLost(Exception):
    """A history that cannot be read any more, and why."""


def handed_on(job: Job, *, refused_too: bool = False) -> History:
    """Return the messages that the next job of the session begins with: all of an ended job's last prompt and since.

    A step whose tools never all answered is left out: no provider takes a call without its result. So is a turn that
    its model refused: shown it, the next turns are refused as well. `refused_too`: as earlier builds handed on.
    """
    messages = job.conversation.prompted
    if is_refused(job) and not refused_too:
        # A summary of the history stands in the turn itself, and only the refusal is left out.
        return messages[:-1] if job.session.summarised else job.conversation.history
    answered = len(messages)
    while answered and isinstance(messages[answered - 1], ToolMessage):
        answered -= 1
    last = messages[answered - 1] if answered else None
    if isinstance(last, AssistantMessage) and len(last.tool_calls) > len(messages) - answered:
        return messages[: answered - 1]
    return messages


def is_refused(job: Job) -> bool:
    """Return whether a job ended with its model's refusal."""
    messages = job.conversation.messages
    said_last = bool(messages) and messages[-1].role == "assistant" and not messages[-1].tool_calls
    return said_last and job.model.stop_reason == "refused" and isinstance(job.life.ended, JobFailed)


def history_hash(messages: Sequence[ChatMessage]) -> str:
    """Return the hash by which a history is known again when it is read anew."""
    hashed = blake2b(digest_size=HASH_BYTES)
    for message in messages:
        # Without defaults: a field that a newer build adds leaves the hashes of older messages as they are.
        hashed.update(message.__pydantic_serializer__.to_json(message, exclude_defaults=True))
    return hashed.hexdigest()


def history_bytes(messages: Sequence[ChatMessage]) -> int:
    """Return how long a history is as JSON."""
    return sum(len(message.__pydantic_serializer__.to_json(message, exclude_defaults=True)) for message in messages)


def as_sent(history: Sequence[ChatMessage], *, is_unbound: bool) -> History:
    """Return a history as the job's prompts hold it."""
    return tuple(map(unbound, history)) if is_unbound else tuple(history)


def bounded(messages: History) -> History:
    """Return a history that is not too long. Raises HistoryLost."""
    if history_bytes(messages) > HISTORY_MAX_BYTES:
        raise HistoryLost(f"it has more than {HISTORY_MAX_BYTES} bytes")
    return messages


def with_history(job: Job, history: Sequence[ChatMessage], *, is_unbound: bool) -> Job:
    """Return a job whose prompts begin with a history."""
    before = as_sent(history, is_unbound=is_unbound)
    return job._replace(conversation=job.conversation._replace(history=before))


async def read_history(
    bus: Bus, tenant: str, end: HistoryEnd, *, kept: Callable[[HistoryEnd], History | None] = lambda _: None
) -> History:
    """Return a pinned history from the logs of its jobs. Raises HistoryLost where it is gone or another one, or Retry.

    `kept`: histories at hand; logs are read no further back than one of them.
    """
    chain: list[tuple[Job, HistoryEnd]] = []
    messages: History = ()
    at: HistoryEnd | None = end
    while at is not None:
        if len(chain) >= CHAIN_MAX:
            raise HistoryLost(f"it is longer than {CHAIN_MAX} jobs")
        at_hand = kept(at)
        if at_hand is not None:
            messages = at_hand
            break
        jobs = JobLog(bus, tenant, at.job_id)
        head = await jobs.last()
        if head is None or head.seq != at.seq:
            raise HistoryLost(f"the log of job {at.job_id} is gone")
        chain.append((await folded(jobs, head), at))
        at = chain[-1][0].session.history_end
    for job, pinned in reversed(chain):
        continued = job.session.continued
        is_unbound = continued is not None and continued.unbound
        whole = with_history(job, messages, is_unbound=is_unbound)
        messages = bounded(handed_on(whole, refused_too=not pinned.without_refused))
    if history_hash(messages) != end.hash:
        raise HistoryLost(f"the log of job {end.job_id} says something else now")
    return messages


async def folded(jobs: JobLog, head: Head) -> Job:
    """Fold a log up to a record of it. Raises Retry where a newer build has to read it."""
    values = [value for record in await jobs.records(head.sequence) for value in record]
    unknown = unknown_types(values)
    if unknown:
        raise Retry(f"job {jobs.job_id} has events of types {sorted(unknown)}", after_s=NEWER_RETRY_S)
    try:
        return fold(read_event(value) for value in values)
    except ValidationError as error:
        # An event that is known has a value that is not: that, too, is a newer build's.
        raise Retry(f"the log of job {jobs.job_id} cannot be read: {explain(error)}", after_s=NEWER_RETRY_S) from None
