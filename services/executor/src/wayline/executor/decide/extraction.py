"""What a job keeps of what its user said in other jobs: how a helper model is asked, and what its answer proves. Pure.

The model is shown the user's own words and nothing else, so no words of strangers or of an assistant become a fact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple, get_args

from pydantic import ValidationError

from wayline.contracts import ids
from wayline.contracts.chat import TextPart, UserMessage
from wayline.contracts.events import MemoryExtracted, MemorySaved, MemorySummarized
from wayline.contracts.memory import (
    FACTS_PER_SAVE_MAX,
    QUOTE_CHARS_MAX,
    MemoryCategory,
    NewFact,
    Quoted,
    SaveMemories,
    WrittenBy,
)
from wayline.contracts.models import ModelCard
from wayline.executor.decide.actions import Action, Complete, ExtractFacts, SaveFacts
from wayline.executor.decide.call_origin import FIRST_EVENT, QUOTE_CHARS_MIN, plain
from wayline.executor.decide.helper_model import helper_model
from wayline.executor.decide.lexical_support import is_unsaid
from wayline.executor.decide.limits import is_out_of_time
from wayline.executor.decide.retry_or_reroute import wait_for_helper
from wayline.executor.prompt.shorten import cut
from wayline.journal import Job
from wayline.llm import ModelRequest
from wayline.llm.broken_json import repair
from wayline.llm.output_room import room_aside
from wayline.llm.structured import unwrapped
from wayline.llm.tokens import estimate

SECONDS_MAX = 60.0
ANSWER_TOKENS = 2_000
READ_TOKENS_MAX = 16_000
"""Estimated; as much of what the user said as the helper reads: of more than that the newest."""
SAVE_WITHIN = timedelta(days=1)
"""How long what a helper model said is offered to a memory that does not answer."""
NO_HELPER = "the job has no model that could be asked"
NOTHING_SAID = "the user said nothing in these jobs that could be read"
OFF = "the agent may not write memories"
LATE = "what remembers did not answer for a day"
NO_LIST = "the answer was no list of facts"
HEAD = "What the user said, each message after its number:"


class UserWords(NamedTuple):
    """What a user said in one job."""

    job_id: str
    said_at: datetime | None
    text: str


Spoken = tuple[UserWords, str]
"""A message, and its text as quotes are looked for in it."""


class Conversation(NamedTuple):
    """What a user said in some jobs, and whose words of strangers these had read."""

    words: tuple[UserWords, ...] = ()
    tainted_by: tuple[str, ...] = ()


def words_of_job(job: Job, *, user_id: str) -> UserWords | None:
    """Return what a user said in an ended job; None: it is another's, or what a job or a schedule wrote."""
    submitted = job.life.submitted
    if submitted is None or submitted.user_id != user_id or job.life.ended is None or submitted.keeps_memory:
        return None
    if job.family.parent is not None or job.life.schedule is not None:
        return None
    text = "\n".join(part.text for part in submitted.parts() if isinstance(part, TextPart)).strip()
    return UserWords(job.job_id, job.life.created_at, text) if text else None


def remembers_for(job: Job) -> str | None:
    """Return the user whose words in an ended job are to be read once its session is quiet; None: they are not."""
    submitted, config = job.life.submitted, job.routing.config
    if submitted is None or config is None or submitted.session_id is None or job.life.schedule is not None:
        return None
    wanted = config.extract_memories and config.memory is True and ids.may_be_remembered(submitted.user_id)
    return submitted.user_id if wanted else None


def due(job: Job) -> Action | None:
    """Return what a job needs next that remembers; None: it is none, or its time is over."""
    submitted, state = job.life.submitted, job.remembering
    if submitted is None or submitted.extract is None:
        return None
    if state.saved is not None:
        return Complete(told(state.saved), partial=state.saved.reason is not None, reason=state.saved.reason)
    if state.extracted is not None:
        return _keep(job, state.extracted)
    return ask_or_end(job, ExtractFacts)


def ask_or_end(job: Job, ask: Callable[[ModelCard], Action]) -> Action | None:
    """Return the question for the helper model of a job that remembers, or why it ends; None: its time is over."""
    state = job.remembering
    if state.begun and not state.may_ask_again:
        return wait_for_helper(job) or Complete(
            "", partial=True, reason=state.failed.error.message if state.failed else NO_LIST
        )
    if is_out_of_time(job):
        return None
    helper, config = helper_model(job), job.routing.config
    if config is None or config.memory is not True:
        return Complete("", partial=True, reason=OFF)
    return Complete("", partial=True, reason=NO_HELPER) if helper is None else ask(helper)


def _keep(job: Job, extracted: MemoryExtracted) -> Action:
    if not extracted.facts:
        return Complete(told(None), partial=extracted.reason is not None, reason=extracted.reason)
    return too_late() if is_too_late(job, extracted) else SaveFacts(extracted)


def is_too_late(job: Job, answered: MemoryExtracted | MemorySummarized) -> bool:
    """Return whether what a helper model said was offered to the memory for long enough.

    Counted from its answer: before that the job may have waited for days until a budget had room.
    """
    return job.at is not None and job.at > answered.at + SAVE_WITHIN


def too_late() -> Complete:
    """Return the end of a job whose memory did not answer."""
    return Complete("", partial=True, reason=LATE)


def question(card: ModelCard, words: Sequence[UserWords], *, attempt_id: str) -> ModelRequest:
    """Return the request that asks for the facts."""
    limit = room_aside(card, ANSWER_TOKENS)
    room = min(READ_TOKENS_MAX, card.context_window - limit - estimate(_instruction()) - estimate(HEAD))
    shown: list[str] = []
    # The newest first: what was said last is what is true now.
    for place, one in reversed([*enumerate(words, start=1)]):
        head = f"[{place}] "
        text = cut(one.text, max(room - estimate(head), 0) * len(one.text.encode()) // max(estimate(one.text), 1))
        room -= estimate(head + text)
        if room < 0 or not text:
            break
        shown.append(head + text)
    return ModelRequest(
        card=card,
        system=_instruction(),
        messages=(UserMessage(parts=(TextPart(text="\n\n".join([HEAD, *reversed(shown)])),)),),
        tools=(),
        max_output_tokens=limit,
        attempt_id=attempt_id,
        temperature=0.0,
        effort="none",
    )


def extracted(conversation: Conversation, answer: str) -> dict[str, Any]:
    """Return what an answer says, as fields of `MemoryExtracted`: each fact with the place of its quote in the logs."""
    fields = {
        "tainted_by": conversation.tainted_by,
        "read": tuple(one.job_id for one in conversation.words),
    }
    listed = listed_in(answer, "facts")
    if listed is None:
        return {**fields, "reason": NO_LIST}
    # Once, and not for each fact: fifty messages may have megabytes.
    spoken = [(one, plain(one.text)) for one in conversation.words]
    facts = [fact for given in listed if (fact := _fact(given, spoken)) is not None][:FACTS_PER_SAVE_MAX]
    said = [one.text for one in conversation.words]
    unsaid = tuple(place for place, fact in enumerate(facts) if is_unsaid(fact.text, by_user=said))
    return {**fields, "facts": tuple(facts), "unsaid": unsaid}


def save_request(job: Job, found: MemoryExtracted) -> SaveMemories:
    """Return the request that has the facts judged: its key is the job's, so that a repeat saves nothing twice."""
    submitted = job.life.submitted
    assert submitted is not None and submitted.user_id is not None and submitted.extract is not None
    return SaveMemories(
        tenant=job.tenant,
        key=f"{job.tenant}/{job.job_id}/memory",
        user_id=submitted.user_id,
        facts=found.facts,
        written=WrittenBy(
            source="system_inferred",
            agent=submitted.agent,
            job_id=job.job_id,
            conversation=submitted.extract.session_id,
            tainted_by=found.tainted_by,
            unsaid=found.unsaid,
        ),
    )


def told(saved: MemorySaved | None, *, nothing: str = "nothing that lasts") -> str:
    """Return in words what became of the facts."""
    counted = Counter(one.outcome for one in (saved.outcomes if saved is not None else ()))
    return ", ".join(f"{count} {outcome}" for outcome, count in counted.items()) or nothing


def listed_in(answer: str, name: str) -> list[Any] | None:
    """Return the list of this name in a helper model's answer; None: it has none."""
    try:
        value = repair.repaired(unwrapped(answer))
    except ValueError:
        return None
    value = value.get(name) if isinstance(value, dict) else value
    return value if isinstance(value, list) else None


def _fact(given: Any, spoken: Sequence[Spoken]) -> NewFact | None:
    """Return a fact as it is offered to the memory; None: it has not the form of one."""
    if not isinstance(given, dict) or given.get("category") not in get_args(MemoryCategory):
        return None
    quote = given.get("quote")
    quote = quote if isinstance(quote, str) and len(quote) <= QUOTE_CHARS_MAX else None
    named = {name: given[name] for name in ("category", "tier", "keywords", "about") if given.get(name) is not None}
    try:
        return NewFact.model_validate(
            {"text": given.get("fact"), "quote": quote, "quoted": _place(quote, spoken), **named}
        )
    except ValidationError:
        return None


def _place(quote: str | None, spoken: Sequence[Spoken]) -> Quoted | None:
    """Return the newest message that holds a quote word for word; None: the user never said that."""
    wanted = plain(quote or "")
    if len(wanted) < QUOTE_CHARS_MIN:
        return None
    found = next((one for one, text in reversed(spoken) if wanted in text), None)
    return None if found is None else Quoted(job_id=found.job_id, seq=FIRST_EVENT, said_at=found.said_at)


@cache
def _instruction() -> str:
    return files("wayline.executor.decide").joinpath("extraction.md").read_text().strip()
