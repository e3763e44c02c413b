"""What jobs failed of, so that those of one cause can be found and gone on with together. Pure."""

from __future__ import annotations

import re
from hashlib import sha256

from wayline.contracts.chat import ToolMessage
from wayline.journal.state import Job

CAUSE_CHARS_MAX = 200
"""Of a message, once what differs from job to job is taken out: the rest seldom tells causes apart."""
CRASH_LOOP = "crash_loop"
"""What kills every holder is told by no model and no tool."""

_DIFFERENT = (
    (re.compile(r"https?://\S+"), "<url>"),
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE), "<id>"),
    (re.compile(r"\b[a-z]+_[0-9a-f]{8,}\b", re.IGNORECASE), "<id>"),
    (re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b", re.IGNORECASE), "<id>"),
    (re.compile(r"(?<!\w)(['\"`«“]).{1,80}?(['\"`»”])(?!\w)"), "<text>"),
    (re.compile(r"\d+(?:[.,:]\d+)*"), "<n>"),
)


def fingerprint(code: str, culprit: str, message: str) -> str:
    """Return the same 16 characters for failures of one cause: their code, the tool or model, and the kind of message.

    Numbers, ids, addresses and quoted text do not count.
    """
    kind = message
    for pattern, place in _DIFFERENT:
        kind = pattern.sub(place, kind)
    kind = " ".join(kind.lower().split())[:CAUSE_CHARS_MAX]
    return sha256(f"{code}\n{culprit}\n{kind}".encode()).hexdigest()[:16]


def failure_fingerprint(job: Job) -> str | None:
    """Return the fingerprint of a failed job; None: it has not failed."""
    error = job.life.error
    if error is None:
        return None
    if error.code == CRASH_LOOP or job.routing.route is None:
        return fingerprint(error.code, "", error.message)
    if job.model.failed is None and (tool := _failed_tool(job)) is not None:
        return fingerprint(error.code, tool.tool, tool.content)
    return fingerprint(error.code, job.routing.route.name, error.message)


def _failed_tool(job: Job) -> ToolMessage | None:
    """Return a failed result of the last step that called tools."""
    results: list[ToolMessage] = []
    for message in reversed(job.conversation.messages):
        if isinstance(message, ToolMessage):
            results.append(message)
        elif results:
            break
    return next((result for result in reversed(results) if result.failed), None)
