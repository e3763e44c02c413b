"""What a job's log proves of a call that remembers: which of its quotes the user has said. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from wayline.contracts.call_origin import QUOTES_MAX, CallOrigin, FoundQuote
from wayline.contracts.chat import AssistantMessage, ChatMessage, NoteMessage, TextPart, ToolMessage, UserMessage
from wayline.contracts.tools import BUILTIN, MEMORY_TOOLS, MEMORY_WRITES
from wayline.executor.decide.approvals import arguments_of
from wayline.executor.decide.lexical_support import is_unsaid
from wayline.journal import Call, Job

QUOTE = "quote"
TEXTS = frozenset({"fact", "insight"})
"""Arguments that hold what is to be remembered."""
FIRST_EVENT = 1
"""`job.submitted`, which holds the user's words of the job."""
QUOTE_CHARS_MIN = 4
SIGNS = str.maketrans({"\u2019": "'", "\u2018": "'", "\u201c": '"', "\u201d": '"', "\u00a0": " "})


def origin_of(job: Job, call: Call) -> CallOrigin | None:
    """Return where a call of a tool that remembers comes from; None: it is a call of another tool.

    The user's words are those that people sent: what a parent job or a schedule wrote proves nothing of a user.
    """
    definition = job.tools.definition(call.meant.tool)
    if call.meant.tool not in MEMORY_TOOLS or (definition is not None and definition.server != BUILTIN):
        return None
    submitted = job.life.submitted
    if call.meant.tool not in MEMORY_WRITES:
        # What only finds says where it is used.
        return CallOrigin(session_id=submitted.session_id if submitted else None)
    tainted_by, arguments = job.tools.tainted_by, arguments_of(job, call)
    quotes = list(dict.fromkeys(_strings(arguments, {QUOTE})))[:QUOTES_MAX]
    texts = list(dict.fromkeys(_strings(arguments, TEXTS)))[:QUOTES_MAX]
    found = [quote for text in quotes if (quote := _found(job, text)) is not None]
    return CallOrigin(
        agent=submitted.agent if submitted else None,
        session_id=submitted.session_id if submitted else None,
        tainted_by=() if tainted_by is None else (tainted_by,),
        quotes=tuple(found),
        of_assistant=tuple(text for text in texts if _is_of_assistant(job, text)),
        unsaid=_unsaid(job, texts),
    )


def _found(job: Job, quote: str) -> FoundQuote | None:
    wanted = plain(quote)
    if len(wanted) < QUOTE_CHARS_MIN or job.family.parent is not None or job.life.schedule is not None:
        return None
    for message in reversed(job.conversation.prompted):
        if isinstance(message, UserMessage) and wanted in plain(_text(message)):
            return _place(job, quote, message)
    return None


def _place(job: Job, quote: str, message: UserMessage) -> FoundQuote:
    own = any(message is one for one in job.conversation.messages)
    after = job.session.history_end
    if own or after is None:
        return FoundQuote(quote=quote, job_id=job.job_id, seq=FIRST_EVENT if own else 0, said_at=message.sent_at)
    return FoundQuote(quote=quote, job_id=after.job_id, said_at=message.sent_at)


def _is_of_assistant(job: Job, text: str) -> bool:
    """Return whether the assistant has said a text word for word, and no user has."""
    wanted = plain(text).rstrip(".")
    said = [_role(message) for message in job.conversation.prompted if wanted and wanted in plain(_text(message))]
    return AssistantMessage in said and UserMessage not in said


def _unsaid(job: Job, texts: Sequence[str]) -> tuple[str, ...]:
    """Return the texts of whose words too few were said; neither the assistant nor memory itself says anything new."""
    prompted = job.conversation.prompted
    by_user = [_text(message) for message in prompted if isinstance(message, UserMessage)]
    notes = [message for message in prompted if isinstance(message, NoteMessage)]
    by_others = [note.text for note in notes if not note.label.startswith("MEMORY")]
    answers = [message for message in prompted if isinstance(message, ToolMessage)]
    by_others += [answer.content for answer in answers if answer.tool not in MEMORY_TOOLS]
    return tuple(text for text in texts if is_unsaid(text, by_user=by_user, by_others=by_others))


def _role(message: ChatMessage) -> type[ChatMessage]:
    return type(message)


def _text(message: ChatMessage) -> str:
    if isinstance(message, UserMessage):
        return "\n".join(part.text for part in message.parts if isinstance(part, TextPart))
    return message.text if isinstance(message, AssistantMessage) else ""


def plain(text: str) -> str:
    """Return a text without what does not count when a quote is looked for: case, spaces, kinds of signs."""
    return " ".join(unicodedata.normalize("NFKC", text).translate(SIGNS).casefold().split())


def _strings(value: Any, names: frozenset[str] | set[str]) -> Iterator[str]:
    """Yield the strings under these names, in the arguments and in the objects of their lists."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if name in names and isinstance(inner, str):
                yield inner
            elif isinstance(inner, list):
                for one in inner:
                    yield from _strings(one, names)
