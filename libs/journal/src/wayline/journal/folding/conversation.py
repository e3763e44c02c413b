"""What each event adds to the conversation, or takes from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wayline.contracts import events as e
from wayline.contracts.chat import AssistantMessage, ChatMessage, LoadedTools, NoteMessage, ToolMessage, UserMessage
from wayline.contracts.jobs import EarlierMessage
from wayline.contracts.loaded_tools import LoadingMessage
from wayline.contracts.tools import ToolDefinition
from wayline.journal.calls import Call
from wayline.journal.folding.tools import is_last
from wayline.journal.state import Changes, Job, density


def _submitted(job: Job, event: e.JobSubmitted) -> Changes:
    message = UserMessage(parts=event.job.parts(), style=event.job.options.style, sent_at=event.at)
    told: Changes = {"history": tuple(map(_earlier, event.job.history))} if event.job.history else {}
    return {"messages": (message,)} | told


def _earlier(said: EarlierMessage) -> ChatMessage:
    """Return a message of the client's conversation as prompts have it."""
    if said.role == "user":
        return UserMessage(parts=said.parts)
    if said.role == "assistant":
        return AssistantMessage(text=said.text)
    return NoteMessage(label="CONTEXT", text=said.text, quoted=True)


def _routed(job: Job, event: e.JobRouted) -> Changes:
    changes: Changes = {"attachments": event.attachments} if event.attachments else {}
    return changes | _known(event.candidates.density_of(event.route.name))


def _known(known: float | None) -> Changes:
    return {} if known is None else {"density": known, "is_density_known": True}


def _model_requested(job: Job, _: e.ModelRequested) -> Changes:
    changes: Changes = {"compacted": False} if job.conversation.compacted else {}
    steering = job.conversation.steering
    if not steering:
        return changes
    messages = (*job.conversation.messages, *(event.message for event in steering))
    return changes | {"messages": messages, "steering": ()}


def _steered(job: Job, event: e.SessionSteered) -> Changes:
    return {"steering": (*job.conversation.steering, event)}


def _model_completed(job: Job, event: e.ModelCompleted) -> Changes:
    estimated = _estimated(job)
    changes: Changes = {
        "messages": (*job.conversation.messages, event.message),
        "prompt_tokens": event.usage.total or estimated,
    }
    counted = density(event.usage.input, estimated or 0)
    if counted is not None:
        changes["density"] = counted
    return changes


def _rerouted(job: Job, event: e.JobRerouted) -> Changes:
    """Forget what another model's provider counted, for what is known of this one's."""
    known = job.routing.candidates.density_of(event.route.name)
    changes: Changes = {"density": known, "is_density_known": known is not None}
    messages = job.conversation.messages
    if job.model.stop_reason == "refused" and messages[-1:] and messages[-1].role == "assistant":
        # Another model is asked the same: shown the refusal, it would refuse as well.
        changes["messages"] = messages[:-1]
    return changes


def _estimated(job: Job) -> int | None:
    """Return the tokens of the last prompt, as its call was recorded."""
    return job.model.asked.estimated_tokens if job.model.asked else None


def _aux_requested(job: Job, event: e.AuxiliaryRequested) -> Changes:
    return _compacting(job, event.purpose)


def _aux_ended(job: Job, event: e.AuxiliaryCompleted | e.AuxiliaryFailed) -> Changes:
    return _compacting(job, event.purpose)


def _compacting(job: Job, purpose: e.Purpose) -> Changes:
    return {"compacting_at": job.model.step} if purpose == "compaction" else {}


def _injected(job: Job, event: e.ContextInjected) -> Changes:
    return {"messages": (*job.conversation.messages, event.note)}


def _remembered(job: Job, event: e.MemoryInjected) -> Changes:
    return {"messages": (*job.conversation.messages, event.note)}


def _compacted(job: Job, event: e.ContextCompacted) -> Changes:
    messages = job.conversation.messages
    kept = map(unbound, messages[max(1, len(messages) - event.kept) :])
    shorter = (*messages[:1], event.note, *kept)
    # The summary is of what was said before the job, too.
    return {"history": (), "messages": shorter, "compacted": True, "prompt_tokens": None}


def _continued(job: Job, event: e.SessionContinued) -> Changes:
    own = {attachment.document_id for attachment in job.conversation.attachments}
    before = (attachment for attachment in event.attachments if attachment.document_id not in own)
    return {"history": (), "attachments": (*job.conversation.attachments, *before), **_known(event.density)}


def _summarized(job: Job, event: e.ResultSummarized) -> Changes:
    return _shown_instead(job, event.call, {"content": event.content})


def _reranked(job: Job, event: e.PassagesReranked) -> Changes:
    if not event.reranked:
        return {}
    return _shown_instead(job, event.call, {"content": event.content, "citations": event.citations})


def _shown_instead(job: Job, call: str, fields: Changes) -> Changes:
    """Change what the model is shown of a call's result, where no prompt has held it yet."""
    messages = list(job.conversation.messages)
    for at in range(len(messages) - 1, -1, -1):
        message = messages[at]
        if isinstance(message, AssistantMessage):
            # The call's result is in an earlier step, which prompts have held: it stays as it is.
            return {}
        if isinstance(message, ToolMessage) and message.call == call:
            messages[at] = message.model_copy(update=fields)
            return {"messages": tuple(messages)}
    return {}


def unbound(message: ChatMessage) -> ChatMessage:
    """Return a message without its provider's blocks, which are bound to what stood before it."""
    verbatim = isinstance(message, AssistantMessage) and message.verbatim is not None
    return message.model_copy(update={"verbatim": None}) if verbatim else message


def _tool_completed(job: Job, event: e.ToolCompleted) -> Changes:
    calls = job.tools.calls
    if not calls or not is_last(job, event):
        return {}
    # The model is shown the results in the order it asked for them, whichever ended first.
    return {"messages": (*job.conversation.messages, *(_shown(job, call, call.done or event) for call in calls))}


def _shown(job: Job, call: Call, done: e.ToolCompleted) -> ToolMessage:
    fields: dict[str, Any] = {
        "call": call.wanted.call,
        "tool": call.wanted.tool,
        "content": done.content if done.error is None else done.error.message,
        "images": done.images,
        "citations": done.citations,
        "failed": done.status != "success",
        "provider_id": call.wanted.provider_id,
        "loaded": done.loaded,
    }
    definitions = _definitions(job, done.loaded) if done.loaded else ()
    return LoadingMessage(**fields, definitions=definitions) if definitions else ToolMessage(**fields)


def _definitions(job: Job, loaded: LoadedTools) -> tuple[ToolDefinition, ...]:
    """Return the definitions that a result loads, each as the model was told of it first; none if one is not known."""
    first = {tool.name: tool for tool in reversed(job.tools.discovered)}
    return tuple(first[name] for name in loaded.names) if first.keys() >= set(loaded.names) else ()


CHANGES: dict[type[e.Event], Callable[[Job, Any], Changes]] = {
    e.JobSubmitted: _submitted,
    e.JobRouted: _routed,
    e.JobRerouted: _rerouted,
    e.ModelRequested: _model_requested,
    e.ModelCompleted: _model_completed,
    e.AuxiliaryRequested: _aux_requested,
    e.AuxiliaryCompleted: _aux_ended,
    e.AuxiliaryFailed: _aux_ended,
    e.ContextInjected: _injected,
    e.MemoryInjected: _remembered,
    e.ContextCompacted: _compacted,
    e.ResultSummarized: _summarized,
    e.PassagesReranked: _reranked,
    e.SessionContinued: _continued,
    e.SessionSteered: _steered,
    e.ToolCompleted: _tool_completed,
}
