"""When a helper model rewrites the query of a follow-up, how it is asked, and what its answer means. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from wayline.contracts.chat import AssistantMessage, NoteMessage, TextPart, UserMessage
from wayline.contracts.framed_words import framed
from wayline.contracts.models import ModelCard
from wayline.contracts.reranking import with_note
from wayline.contracts.tools import BUILTIN, ToolReply
from wayline.executor.decide.actions import Rewrite
from wayline.executor.decide.compaction import HEADING
from wayline.executor.decide.helper_model import helper_model
from wayline.executor.decide.repeated_calls import answered_before
from wayline.executor.prompt.builtin_tools import refusal
from wayline.journal import Call, Job
from wayline.llm import ModelRequest
from wayline.llm.offline import SEARCH
from wayline.llm.output_room import room_aside
from wayline.llm.tokens import estimate

SECONDS_MAX = 20.0
"""A job waits no longer for a query that it can do without."""
MESSAGES_MAX = 8
"""Of the conversation, the newest: about four turns."""
MESSAGE_MAX_CHARS, MESSAGE_MIN_CHARS = 1_000, 125
"""Of each message; where the helper's window has room for less, it is not asked."""
QUERY_MAX_CHARS = 1_000
"""A longer query is a text of its own."""
REWRITTEN_MAX_CHARS = 500
ANSWER_TOKENS = 256
ANSWER_MAX_CHARS = 8_000
LOST = "an executor was lost while a model was asked, and nobody asks twice"
NO_HELPER = "the job has no model that could be asked"
ALONE = "it stands by itself"
CONVERSATION = "What was said in a conversation, the newest last"

_OBJECT = re.compile(r"\{[^{}]*\}")
_EXACT = re.compile(r'-?"[^"]+"|(?<!\S)-\w\S*|\w\S*\*(?!\w)|\S*\d\S*')
"""What a query says word for word: phrases, what is left out, beginnings of words, what has a digit."""
_PLACE = re.compile(r"\W*\d{1,2}\W*[^\W\d_]{0,3}\W*")
"""A place in a list, such as `2nd`: what it stands for may take it."""


class Read(NamedTuple):
    """What an answer means."""

    query: str = ""
    why: str = ""
    """Why the query stays."""


def due(job: Job, calls: Sequence[Call]) -> Rewrite | None:
    """Return the first of these calls whose query is to be written anew before it is searched for."""
    config = job.routing.config
    if config is None or not config.rewrite_queries or not _goes_on(job):
        return None
    call = next((call for call in calls if _is_new_search(job, call)), None)
    if call is None:
        return None
    if call.rewrite_asked:
        return Rewrite(None, call, LOST)
    helper = helper_model(job)
    return Rewrite(helper, call, NO_HELPER if helper is None else "")


def _goes_on(job: Job) -> bool:
    """Return whether something was said before the job: the log tells, also where the messages are elsewhere."""
    continued, submitted = job.session.continued, job.life.submitted
    return bool((continued is not None and continued.messages) or (submitted is not None and submitted.history))


def _is_new_search(job: Job, call: Call) -> bool:
    """Return whether a call is a search that is about to be made, as the model said it."""
    if call.key is not None or call.rewritten is not None or call.unloaded:
        return False
    wanted = call.meant
    definition = job.tools.definition(wanted.tool)
    if wanted.tool != SEARCH or definition is None or definition.server != BUILTIN or not query_of(call):
        return False
    # What a person approved is made as it was approved; what is not made at all needs no query.
    approved = job.tools.approval(wanted.call) is not None
    return not approved and refusal(job, wanted) is None and answered_before(job, call) is None


def query_of(call: Call) -> str:
    """Return what a search is to find, as the model said it; empty where nobody would write that anew."""
    query = call.meant.arguments.get("query")
    return query.strip() if isinstance(query, str) and len(query) <= QUERY_MAX_CHARS else ""


def question(card: ModelCard, job: Job, call: Call, *, attempt_id: str) -> ModelRequest | None:
    """Return the request that asks for the query; None: the model has no room for it."""
    limit = room_aside(card, ANSWER_TOKENS)
    text = _fitting(job, query_of(call), tokens=card.context_window - limit - estimate(_instruction()))
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


def _fitting(job: Job, query: str, *, tokens: int) -> str | None:
    """Return the question with as much of each message as there is room for."""
    said = list(_said(job))[-MESSAGES_MAX:]
    chars = MESSAGE_MAX_CHARS
    while chars >= MESSAGE_MIN_CHARS:
        lines = "\n\n".join(f"{who}: {_ends(text, chars)}" for who, text in said)
        if job.tools.tainted_by is not None:
            lines = framed("the conversation", lines)
        text = f"{CONVERSATION}:\n\n{lines}\n\nThe query that goes on from it:\n{query}"
        if estimate(text) <= tokens:
            return text
        chars //= 2
    return None


def _said(job: Job) -> Iterator[tuple[str, str]]:
    """Yield who said what: people, the model, and a summary of what both said before."""
    for message in job.conversation.prompted:
        if isinstance(message, UserMessage):
            who, text = "USER", "\n".join(part.text for part in message.parts if isinstance(part, TextPart))
        elif isinstance(message, AssistantMessage):
            who, text = "ASSISTANT", message.text
        elif isinstance(message, NoteMessage) and message.text.startswith(HEADING):
            who, text = "SUMMARY", message.text
        else:
            continue
        if text.strip():
            yield who, text.strip()


def _ends(text: str, chars: int) -> str:
    """Return a text, or its beginning and its end: a list's last items are what "the last one" means."""
    return text if len(text) <= chars else f"{text[: chars // 2]} … {text[-(chars // 2) :]}"


def read_query(answer: str, query: str) -> Read:
    """Return the query that an answer gives instead; or why the old one stays."""
    found = _OBJECT.search(answer[:ANSWER_MAX_CHARS])
    given: Any = None
    if found is not None:
        try:
            given = json.loads(found[0]).get("query")
        except ValueError:
            given = None
    if not isinstance(given, str):
        return Read(why="the model's answer holds no query")
    given = " ".join("".join(one if one.isprintable() else " " for one in given).split())
    if not given:
        return Read(why="the model's query is empty")
    if len(given) > REWRITTEN_MAX_CHARS:
        return Read(why=f"the model's query has more than {REWRITTEN_MAX_CHARS} characters")
    if given.casefold() == " ".join(query.split()).casefold():
        return Read(why=ALONE)
    lost = next((one for one in _exact(query) if one.casefold() not in given.casefold()), None)
    return Read(query=given) if lost is None else Read(why=f"the model's query leaves out {lost}")


def _exact(query: str) -> Iterator[str]:
    """Yield what a query says word for word, but for places in a list."""
    for found in _EXACT.finditer(query):
        text = found[0].rstrip(".,;:!?)").lstrip("(")
        if not _PLACE.fullmatch(text):
            yield text


def say_what_was_searched(job: Job, call: Call, reply: ToolReply) -> ToolReply:
    """Return a search's result with what was searched instead of the model's query, or why that stayed, below it."""
    event = call.rewritten
    if event is None or reply.status != "success" or event.reason == ALONE:
        return reply
    note = (
        f'(Searched for "{event.query}", which a helper model wrote from the query and what was said before.)'
        if event.rewritten
        else f"(Searched as asked, without what was said before: {event.reason}.)"
    )
    found = reply.found and reply.found.model_copy(update={"note": with_note(reply.found.note, note).lstrip()})
    # The helper had read what strangers wrote, and its words stand in the result.
    strangers = True if event.rewritten and job.tools.tainted_by is not None else reply.strangers
    content = with_note(reply.content, note)
    return reply.model_copy(update={"content": content, "found": found, "strangers": strangers})


@cache
def _instruction() -> str:
    return files("wayline.executor.decide").joinpath("query_rewrite.md").read_text().strip()
