"""When a helper model ranks what a search found, how it is asked, and what its answer means. Pure."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from wayline.contracts.chat import TextPart, UserMessage
from wayline.contracts.events import ToolCompleted
from wayline.contracts.framed_words import framed
from wayline.contracts.models import ModelCard
from wayline.contracts.reranking import (
    PASSAGE_MAX_CHARS,
    RERANKED_MAX,
    FoundPassages,
    chosen_order,
    read_order,
    rerank_question,
)
from wayline.contracts.tools import BUILTIN, ToolReply
from wayline.executor.decide.actions import Rerank
from wayline.executor.decide.helper_model import helper_model
from wayline.journal import Call, Job
from wayline.llm import ModelRequest
from wayline.llm.output_room import room_aside
from wayline.llm.tokens import estimate

SECONDS_MAX = 20.0
"""A job waits no longer for an order that it can do without."""
NUMBER_TOKENS = 4
"""Of one number in the answer, with the comma behind it."""
WORDS_TOKENS = 32
"""Of the answer beside them."""
PASSAGE_MIN_CHARS = 125
"""Of each passage, where the helper's window is small; where it has room for less, it is not asked."""
LOST = "an executor was lost while a model was asked, and nobody asks twice"
NO_HELPER = "the job has no model that could be asked"
TOO_FEW = "there is nothing to put in order"


def is_wanted(job: Job, call: Call) -> bool:
    """Return whether a job has its searches ranked by default: not in programs, which are answered at once."""
    config = job.routing.config
    return config is not None and config.rerank and job.code.call(call.wanted.call) is None


def found_passages(job: Job, call: Call, reply: ToolReply) -> FoundPassages | None:
    """Return what a model is to choose from; to a program its call has returned already."""
    definition = job.tools.definition(call.meant.tool)
    ours = definition is not None and definition.server == BUILTIN and job.code.call(call.wanted.call) is None
    return reply.found if ours else None


def due(job: Job) -> Rerank | None:
    """Return the next search of the last step whose passages are to be ranked."""
    if not job.tools.unranked:
        return None
    done = job.tools.unranked[0]
    if f"{done.step}/{done.call}" in job.tools.rank_asked:
        return Rerank(None, done, LOST)
    if done.found is None or len(done.found.passages) < 2:
        return Rerank(None, done, TOO_FEW)
    helper = helper_model(job)
    return Rerank(helper, done, NO_HELPER if helper is None else "")


def question(card: ModelCard, done: ToolCompleted, *, attempt_id: str) -> ModelRequest | None:
    """Return the request that asks for the order; None: the model has no room for it."""
    assert done.found is not None
    top = min(done.found.top, RERANKED_MAX)
    limit = room_aside(card, WORDS_TOKENS + NUMBER_TOKENS * top)
    text = _fitting(done, done.found, top=top, tokens=card.context_window - limit - estimate(_instruction()))
    if text is None:
        return None
    return ModelRequest(
        card=card,
        system=_instruction(),
        messages=(UserMessage(parts=(TextPart(text=text),)),),
        tools=(),
        max_output_tokens=limit,
        attempt_id=attempt_id,
        temperature=0.0,
        effort="none",
    )


def _fitting(done: ToolCompleted, found: FoundPassages, *, top: int, tokens: int) -> str | None:
    """Return the question with as much of each passage as there is room for."""
    some = found.passages[:RERANKED_MAX]
    shown = [framed(done.tool, one.text) if one.untrusted else one.text for one in some]
    chars = PASSAGE_MAX_CHARS
    while chars >= PASSAGE_MIN_CHARS:
        text = rerank_question(found.query, shown, top=top, chars_max=chars)
        if estimate(text) <= tokens:
            return text
        chars //= 2
    return None


def order_of(found: FoundPassages, answer: str) -> tuple[int, ...] | str:
    """Return the places of what is shown, from 0; or why the answer means no order."""
    chosen = read_order(answer, count=min(len(found.passages), RERANKED_MAX))
    return chosen if isinstance(chosen, str) else chosen_order(chosen, count=len(found.passages), top=found.top)


@cache
def _instruction() -> str:
    return files("wayline.executor.decide").joinpath("rerank.md").read_text().strip()
