"""What a model is told of a call whose arguments could not be read."""

from __future__ import annotations

from wayline.contracts.tools import ToolError, ToolReply
from wayline.executor.decide.accept_answer import CUT
from wayline.journal import Call, Job
from wayline.llm.broken_json.tool_arguments import UNREADABLE, UNREADABLE_MAX_CHARS


def unread_reply(job: Job, call: Call) -> ToolReply | None:
    """Return the answer to a call whose arguments could not be read; None: they could.

    A schema that asks for nothing would let them pass.
    """
    if UNREADABLE not in call.meant.arguments:
        return None
    error = ToolError(code="invalid_arguments", message=unread(job, call))
    return ToolReply(status="failed", error=error, strangers=False)


def unread(job: Job, call: Call) -> str:
    """Return what a model is told of a call whose arguments could not be read."""
    last = job.conversation.last_said
    cut = job.model.stop_reason in CUT and last is not None and call.wanted.call == last.tool_calls[-1].call
    if not cut:
        return "the arguments are not a JSON object: call it again, with one"
    written = call.meant.arguments.get(UNREADABLE)
    read = len(written) if isinstance(written, str) else 0
    more = "more than " if read >= UNREADABLE_MAX_CHARS else ""
    length = f" after {more}{read} characters of its arguments" if read else ""
    return (
        f"the call was not made: your answer was cut at its longest{length}. Call it again with less in one call, such "
        "as a part of the text at a time"
    )
