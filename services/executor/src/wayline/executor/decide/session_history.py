"""What a job goes on with in its session: the messages of the one before it, its tools, its last call. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wayline.contracts.chat import ChatMessage, NoteMessage
from wayline.contracts.events import HistoryEnd, SessionCall
from wayline.contracts.tools import ToolDefinition
from wayline.contracts.working_context import WorkingContext
from wayline.executor.prompt.builtin_tools import may_use
from wayline.executor.prompt.working_context import in_words
from wayline.journal import Job, history_hash, is_refused

FORGOTTEN = "This conversation was under way before, and what was said in it is not available any more"


def continues(job: Job, tail: Job, history: Sequence[ChatMessage]) -> dict[str, Any]:
    """Return what is pinned of the job before, as fields of `SessionContinued`; `history` is what it handed on."""
    asked = tail.model.asked
    assert asked is not None
    changed = _agent(tail) != _agent(job)
    route = job.routing.route
    other_model = route is None or (asked.provider, asked.model) != (route.provider, route.model)
    # Its last call has said what is not handed on.
    refused = is_refused(tail)
    call = SessionCall(at=asked.at, provider=asked.provider, model=asked.model, prefix=asked.prefix)
    end = {"job_id": tail.job_id, "seq": tail.seq, "hash": history_hash(history), "without_refused": True}
    return {
        "after": HistoryEnd.model_validate(end),
        "messages": len(history),
        "tokens": None if refused else tail.conversation.prompt_tokens,
        "call": None if refused else call,
        "density": None if other_model else tail.conversation.density,
        "unbound": changed or other_model,
        "agent_changed": changed,
        "tools": None if changed else tail.tools.offered,
        "discovered": _still_usable(job, tail) if changed else tail.tools.discovered,
        "deferred_tokens": 0 if changed else tail.tools.deferred_tokens,
        "attachments": tail.conversation.attachments,
        **carried(tail),
    }


def carried(tail: Job) -> dict[str, Any]:
    """Return what the job before it hands on beside its messages, as fields of `SessionContinued`."""
    return {"tainted_by": tail.tools.tainted_by, "context": tail.working_context}


def lost_note(why: str, context: WorkingContext) -> NoteMessage:
    """Return what a model is told in the place of a history that is lost."""
    text = "\n".join(filter(None, (f"{FORGOTTEN}: {why}.", in_words(context))))
    return NoteMessage(label="CONTEXT", text=text, quoted=True)


def _still_usable(job: Job, tail: Job) -> tuple[ToolDefinition, ...]:
    """Return the tools found before that the job's agent may use, too: its history says how they are called."""
    if job.routing.config is None:
        return ()
    usable = (tool for tool in tail.tools.discovered if may_use(job, tool.name))
    return tuple(tool for tool in usable if tool.name not in job.tools.client)


def _agent(job: Job) -> tuple[object, ...]:
    """Return what two jobs have in common whose prompts begin alike; settings may change between them."""
    submitted, config = job.life.submitted, job.routing.config
    chosen = (config.style, config.tools, config.tools_off, config.tools_loading) if config else ()
    theirs = submitted.options.client_tools if submitted else None
    return submitted.agent if submitted else "", job.routing.agent_version, theirs, *chosen
