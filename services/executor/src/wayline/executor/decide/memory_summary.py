"""How a job summarises what is remembered of its user: what a helper model is shown, and what its answer is. Pure.

Whether a summary may stand is judged by what remembers, from the facts that it names.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from pydantic import ValidationError

from wayline.contracts import ids
from wayline.contracts.chat import TextPart, UserMessage
from wayline.contracts.events import MemorySummarized
from wayline.contracts.memory import Fact, WrittenBy
from wayline.contracts.memory_summaries import SUMMARIES_MAX, NewSummary, SummarizeMemories
from wayline.contracts.models import ModelCard
from wayline.executor.decide.actions import Action, Complete, KeepSummaries, SummarizeFacts
from wayline.executor.decide.extraction import ask_or_end, is_too_late, listed_in, told, too_late
from wayline.journal import Job
from wayline.llm import ModelRequest
from wayline.llm.output_room import room_aside

SECONDS_MAX = 60.0
ANSWER_TOKENS = 2_000
FACTS_MAX = 50
"""Of one user those that are shown: more than one has, unless older versions left them."""
GROUP_MIN = 3
"""Facts of a kind below which nothing is to be gained."""
FEW = "too few facts of a kind"
NO_LIST = "the answer was no list of summaries"
HEAD = "What is remembered of a user, each fact after its number:"


def due(job: Job) -> Action | None:
    """Return what a job needs next that summarises; None: it does not, or its time is over."""
    submitted, state = job.life.submitted, job.remembering
    if submitted is None or submitted.summarize is None:
        return None
    if state.saved is not None:
        would_be = "would be: " if submitted.summarize.dry_run and state.saved.outcomes else ""
        undo = f"; undo with run {state.saved.run_id}" if state.saved.run_id else ""
        answer = would_be + told(state.saved, nothing="nothing to summarise") + undo
        return Complete(answer, partial=state.saved.reason is not None, reason=state.saved.reason)
    if state.summarized is None:
        return ask_or_end(job, SummarizeFacts)
    if not state.summarized.summaries:
        reason = state.summarized.reason
        return Complete("nothing to summarise", partial=reason == NO_LIST, reason=reason)
    return too_late() if is_too_late(job, state.summarized) else KeepSummaries(state.summarized)


def summarizes_for(job: Job) -> str | None:
    """Return the user of whom what is remembered is to be summarised from time to time; None: it is not."""
    submitted, config = job.life.submitted, job.routing.config
    if submitted is None or config is None or submitted.summarize is not None or job.life.schedule is not None:
        return None
    if job.family.parent is not None:
        return None
    wanted = config.summarize_memories and config.memory is True and ids.may_be_remembered(submitted.user_id)
    return submitted.user_id if wanted else None


def groups_of(facts: Sequence[Fact]) -> list[tuple[Fact, ...]]:
    """Return the facts that may have a summary, those of a kind together, where there are enough."""
    kinds: dict[tuple[str, str, str], list[Fact]] = {}
    for fact in sorted(facts, key=lambda one: (one.recorded_at, one.fact_id))[:FACTS_MAX]:
        if fact.state == "active" and fact.trust != "stranger" and not fact.conflicts_with:
            kinds.setdefault((fact.category, fact.tier or "", fact.trust), []).append(fact)
    return [tuple(kind) for _, kind in sorted(kinds.items()) if len(kind) >= GROUP_MIN]


def question(card: ModelCard, groups: Sequence[Sequence[Fact]], *, attempt_id: str) -> ModelRequest:
    """Return the request that asks for summaries."""
    lines, number = [HEAD], 0
    for group in groups:
        lines.append(f"\n{group[0].category}, {group[0].tier}:")
        for fact in group:
            number += 1
            lines.append(f"[{number}] {' '.join(fact.text.split())}")
    return ModelRequest(
        card=card,
        system=_instruction(),
        messages=(UserMessage(parts=(TextPart(text="\n".join(lines)),)),),
        tools=(),
        max_output_tokens=room_aside(card, ANSWER_TOKENS),
        attempt_id=attempt_id,
        temperature=0.0,
        effort="none",
    )


def summarized(groups: Sequence[Sequence[Fact]], answer: str) -> dict[str, Any]:
    """Return what an answer says, as fields of `MemorySummarized`: each summary with the facts that it names."""
    shown = [fact for group in groups for fact in group]
    fields = {"shown": tuple(fact.fact_id for fact in shown)}
    listed = listed_in(answer, "summaries")
    if listed is None:
        return {**fields, "reason": NO_LIST}
    found = [one for given in listed if (one := _summary(given, shown)) is not None]
    return {**fields, "summaries": tuple(found[:SUMMARIES_MAX])}


def keep_request(job: Job, found: MemorySummarized) -> SummarizeMemories:
    """Return the request that has the summaries judged, under the job's key: a repeat changes nothing twice."""
    submitted = job.life.submitted
    assert submitted is not None and submitted.user_id is not None and submitted.summarize is not None
    return SummarizeMemories(
        tenant=job.tenant,
        key=f"{job.tenant}/{job.job_id}/memory",
        user_id=submitted.user_id,
        summaries=found.summaries,
        written=WrittenBy(source="system_inferred", agent=submitted.agent, job_id=job.job_id),
        dry_run=submitted.summarize.dry_run,
    )


def _summary(given: Any, shown: Sequence[Fact]) -> NewSummary | None:
    """Return a summary as it is offered to the memory; None: it has not the form of one."""
    numbers = given.get("of") if isinstance(given, dict) else None
    if not isinstance(numbers, list) or not all(type(number) is int and 0 < number <= len(shown) for number in numbers):
        return None
    named = [shown[number - 1] for number in dict.fromkeys(numbers)]
    of = [{"fact_id": fact.fact_id, "version": fact.version} for fact in named]
    try:
        return NewSummary.model_validate({"text": given.get("text"), "of": of})
    except ValidationError:
        return None


@cache
def _instruction() -> str:
    return files("wayline.executor.decide").joinpath("memory_summary.md").read_text().strip()
