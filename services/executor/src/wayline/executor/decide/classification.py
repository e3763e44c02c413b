"""Which type of task a job is, asked of a flash model before its first call: the question, and what it is told."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from hashlib import blake2b
from importlib.resources import files

from wayline.contracts.chat import TextPart, UserMessage
from wayline.executor.decide.actions import Classify, Reroute
from wayline.journal import Job
from wayline.llm import ModelRequest
from wayline.llm.output_room import LABEL_TOKENS, room_aside

TEXT_CHARS_MAX = 4_000
"""Of a job's text, from both of its ends: what is wanted stands at one of them."""
HEAD_SHARE = 0.75
SECONDS_MAX = 10.0
"""A job waits no longer for an answer that it can do without."""
ANSWER_CHARS_MAX = 80
"""Of an answer that names no type, in the log."""
NONE = "none"


def before_first_call(job: Job) -> Classify | Reroute | None:
    """Return what to do before a job's first call: ask for its type of task, or go where the answer sends it."""
    tasks, route = job.routing.candidates.tasks, job.routing.route
    if not tasks or route is None:
        return None
    card = job.routing.candidates.card(route.classifier or "")
    if card is not None and not job.routing.classified:
        return Classify(card, tuple(tasks))
    meant = tasks.get(route.task_type or "")
    # Who was left for another model before the first call is not gone back to.
    return Reroute(meant, "classification") if meant and meant.name not in job.routing.tried else None


def question(job: Job, action: Classify, *, attempt_id: str) -> ModelRequest:
    """Return the request that asks: the same beginning for all jobs of a policy, then the job's own words."""
    card = action.card
    return ModelRequest(
        card=card,
        system=_instruction(action.labels),
        messages=(UserMessage(parts=(TextPart(text=shortened(user_text(job))),)),),
        tools=(),
        max_output_tokens=room_aside(card, LABEL_TOKENS),
        attempt_id=attempt_id,
        temperature=0.0,
        effort="none",
        cache_key=blake2b(f"wayline/classification/{job.tenant}".encode(), digest_size=16).hexdigest(),
    )


def user_text(job: Job) -> str:
    """Return the user's own words."""
    assert job.life.submitted is not None
    return "\n".join(part.text for part in job.life.submitted.parts() if isinstance(part, TextPart))


def shortened(text: str) -> str:
    """Keep the beginning and the end of a text that is too long."""
    if len(text) <= TEXT_CHARS_MAX:
        return text
    head = int(TEXT_CHARS_MAX * HEAD_SHARE)
    return f"{text[:head]}\n…\n{text[head - TEXT_CHARS_MAX :]}"


def label(answer: str, labels: Iterable[str]) -> str | None:
    """Return the one type that an answer names, whatever words are around it; None where it names none, or several."""
    words = _words(answer)
    found = [each for each in labels if _words(each) in words]
    # One name may be a part of another.
    longest = [each for each in found if not any(each != other and _words(each) in _words(other) for other in found)]
    return longest[0] if len(longest) == 1 else None


def unreadable(answer: str) -> str:
    """Explain why an answer leaves the type unknown."""
    if label(answer, [NONE]):
        return "no known type of task fits it"
    return f"the answer names no known type of task: {answer[:ANSWER_CHARS_MAX]!r}"


def _words(text: str) -> str:
    return f" {' '.join(re.findall(r'[a-z0-9]+', text.lower()))} "


@cache
def _instruction(labels: tuple[str, ...]) -> str:
    text = files("wayline.executor.decide").joinpath("classification.md").read_text()
    return text.replace("LABELS", "\n".join(f"- {each}" for each in (*labels, NONE))).strip()
