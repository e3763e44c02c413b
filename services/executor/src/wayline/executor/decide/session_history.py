"""What a job goes on with in its session: the messages of the one before it, its tools, its last call. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

from wayline.contracts.chat import AssistantMessage, ChatMessage, NoteMessage, ToolMessage
from wayline.contracts.events import HistoryEnd, SessionCall
from wayline.contracts.working_context import WorkingContext
from wayline.executor.prompt.working_context import in_words
from wayline.journal import Job, unbound

HASH_BYTES = 16
FORGOTTEN = "This conversation was under way before, and what was said in it is not available any more"


def handed_on(job: Job) -> tuple[ChatMessage, ...]:
    """Return the messages that the next job of the session begins with: all of an ended job's last prompt and since.

    A step whose tools never all answered is left out: no provider takes a call without its result.
    """
    messages = job.conversation.prompted
    answered = len(messages)
    while answered and isinstance(messages[answered - 1], ToolMessage):
        answered -= 1
    last = messages[answered - 1] if answered else None
    if isinstance(last, AssistantMessage) and len(last.tool_calls) > len(messages) - answered:
        return messages[: answered - 1]
    return messages


def history_hash(messages: Sequence[ChatMessage]) -> str:
    """Return the hash by which a history is known again when it is read anew."""
    hashed = blake2b(digest_size=HASH_BYTES)
    for message in messages:
        # Without defaults: a field that a newer build adds leaves the hashes of older messages as they are.
        hashed.update(message.__pydantic_serializer__.to_json(message, exclude_defaults=True))
    return hashed.hexdigest()


def continues(job: Job, tail: Job, history: Sequence[ChatMessage]) -> dict[str, Any]:
    """Return what is pinned of the job before, as fields of `SessionContinued`; `history` is what it handed on."""
    asked = tail.model.asked
    assert asked is not None
    changed = _agent(tail) != _agent(job)
    route = job.routing.route
    other_model = route is None or (asked.provider, asked.model) != (route.provider, route.model)
    return {
        "after": HistoryEnd(job_id=tail.job_id, seq=tail.seq, hash=history_hash(history)),
        "messages": len(history),
        "tokens": tail.conversation.prompt_tokens,
        "call": SessionCall(at=asked.at, provider=asked.provider, model=asked.model, prefix=asked.prefix),
        "unbound": changed or other_model,
        "agent_changed": changed,
        "tools": None if changed else tail.tools.offered,
        "discovered": () if changed else tail.tools.discovered,
        "deferred_tokens": 0 if changed else tail.tools.deferred_tokens,
        "attachments": tail.conversation.attachments,
        **carried(tail),
    }


def carried(tail: Job) -> dict[str, Any]:
    """Return what the job before it hands on beside its messages, as fields of `SessionContinued`."""
    return {"tainted_by": tail.tools.tainted_by, "context": tail.working_context}


def as_sent(history: Sequence[ChatMessage], *, is_unbound: bool) -> tuple[ChatMessage, ...]:
    """Return a history as the job's prompts hold it."""
    return tuple(map(unbound, history)) if is_unbound else tuple(history)


def lost_note(why: str, context: WorkingContext) -> NoteMessage:
    """Return what a model is told in the place of a history that is lost."""
    return NoteMessage(label="CONTEXT", text="\n".join(filter(None, (f"{FORGOTTEN}: {why}.", in_words(context)))))


def _agent(job: Job) -> tuple[object, ...]:
    """Return what two jobs have in common whose prompts begin alike; settings may change between them."""
    submitted, config = job.life.submitted, job.routing.config
    chosen = (config.style, config.tools, config.tools_off, config.tools_loading) if config else ()
    return submitted.agent if submitted else "", job.routing.agent_version, *chosen
