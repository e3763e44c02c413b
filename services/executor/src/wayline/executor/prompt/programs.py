"""What a program is made of, and what it and its model are told."""

from __future__ import annotations

import json
from typing import Any

from wayline.contracts import events as e
from wayline.contracts.chat import ToolCall
from wayline.contracts.tools import Effect, ToolError, ToolReply
from wayline.executor.prompt.builtin_tools import OWN
from wayline.journal import Call, Job
from wayline.llm.tokens import estimate
from wayline.sandbox import Answer, Completed, Failed, Raised, Returned, Stubs, make_stubs

NOTHING = "[The program has no value and printed nothing: end it with an expression.]"
CHANGED = "the tool has changed since it was listed: call it directly, outside of a program"
WITHDRAWN = "its program ended before anybody decided, so it was not made"
_RAISED = {"timeout": "TimeoutError", "invalid_arguments": "ValueError", "denied": "PermissionError"}
"""The exception that each error of a tool is in a program; any other is a RuntimeError."""


def code_of(call: ToolCall) -> str:
    """Return the program that a call of `run_code` holds; one that holds none is refused by its type check."""
    code = call.arguments.get("code")
    return code if isinstance(code, str) and code.strip() else "raise ValueError('`code` is empty')"


def stubs_of(job: Job) -> Stubs:
    """Return the functions of a job's programs: the tools that its model knows, apart from our own and its caller's."""
    newest = {tool.name: tool for tool in (*(job.tools.offered or ()), *job.tools.discovered)}
    # A program could not wait for the job's caller.
    return make_stubs(tool for name, tool in newest.items() if name not in OWN and name not in job.tools.client)


def answer_of(call: Call) -> Answer:
    """Return the outcome of a call as its program sees it."""
    assert call.done is not None
    error = call.done.error
    if error is None and call.done.status == "success":
        return Returned(_value(call.done.content))
    kind: Any = _RAISED.get(error.code, "RuntimeError") if error else "RuntimeError"
    return Raised(error.message if error else call.done.content, kind)


def logged_arguments(job: Job, call: Call) -> dict[str, Any]:
    """Return the arguments of a call as the log has them: as they were approved, else as the program gave them."""
    approval = job.tools.approval(call.wanted.call)
    return approval.arguments if approval is not None else call.meant.arguments


def code_calls(job: Job) -> tuple[e.CodeCall, ...]:
    """Return the ended calls of a job's program."""
    return tuple(
        e.CodeCall(
            number=job.code.number(call.wanted.call),
            call=call.wanted.call,
            tool=call.meant.tool,
            arguments=logged_arguments(job, call),
            status=call.done.status,
            size_bytes=call.done.size_bytes,
            duration_ms=call.done.duration_ms,
        )
        for call in job.code.program_calls
        if call.done is not None
    )


def _value(content: str) -> Any:
    if content.lstrip()[:1] not in ("{", "["):
        return content
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return content


def reply_of(turn: Completed | Failed) -> ToolReply:
    """Return a program's end as the model is told it."""
    if isinstance(turn, Completed):
        text = "\n".join(filter(None, (turn.printed.rstrip(), _text(turn.value)))) or NOTHING
        return _sized(ToolReply(status="success", content=text, effect=Effect.READ), text)
    made = f"[{turn.asked} calls of the program were made; they are not undone.]" if turn.asked else ""
    text = "\n".join(filter(None, (turn.printed.rstrip(), f"The program failed: {turn.message}", made)))
    code = "invalid_arguments" if turn.reason == "rejected" else "tool_failed"
    return _sized(ToolReply(status="failed", error=ToolError(code=code, message=text), effect=Effect.READ), text)


def _text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def refused(message: str) -> ToolReply:
    """Return the answer to a call that a program may not make."""
    return ToolReply(status="failed", error=ToolError(code="refused", message=message), strangers=False)


def _sized(reply: ToolReply, text: str) -> ToolReply:
    return reply.model_copy(update={"size_bytes": len(text.encode()), "tokens": estimate(text)})
