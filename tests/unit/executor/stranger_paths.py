"""The ways of strangers' words to a model: one row each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.unit.executor.strangers import (
    EVIL,
    LONG,
    Heard,
    blocks,
    changed,
    child,
    child_task,
    compacted,
    declined,
    discovered,
    entities,
    failure,
    given,
    knowledge,
    known_entities,
    lost_history,
    never_told,
    outlined,
    program,
    question,
    repeated,
    searched,
    secret,
    session,
    success,
    summarised,
    trusted,
    unloaded,
)
from tests.unit.executor.talk import Talk
from wayline.contracts import events as e
from wayline.contracts.jobs import Failure
from wayline.sandbox import Completed, Failed


@dataclass(frozen=True)
class Path:
    """A way of strangers' words to a model."""

    name: str
    play: Callable[[], Talk]
    framed: bool = True
    taints: bool = True
    why: str = ""
    """Why it is not framed, or does not taint."""


ADDRESS = {"url": f"https://x/{EVIL}", "elicitationId": "1"}
ACCEPTED = "an administrator has accepted the definition, and a changed one waits for that"
A_TASK = "it is the task; the tainted parent wrote it"
CODES = (
    "unknown_tool",
    "invalid_arguments",
    "timeout",
    "tool_failed",
    "unavailable",
    "cancelled",
    "refused",
    "denied",
    "definition_changed",
    "needs_authorization",
)

PATHS: tuple[Path, ...] = (
    Path("result of an untrusted tool", lambda: Heard().end(success())),
    Path("long result, shortened", lambda: Heard().end(success(LONG))),
    Path("long error, shortened", lambda: Heard().end(failure("tool_failed", LONG))),
    Path("long result, summarised by a helper", summarised),
    *(Path(f"result: {name}", lambda reply=reply: Heard().end(reply)) for name, reply in blocks().items()),
    *(Path(f"error `{code}` of an untrusted tool", lambda code=code: Heard().end(failure(code))) for code in CODES),
    Path("result of a trusted tool that says it holds such words", lambda: trusted(success(strangers=True))),
    Path("error of a trusted tool that says so", lambda: trusted(failure("tool_failed", strangers=True))),
    Path("result of a tool that the job was never told of", never_told),
    Path("result of a call that was settled at its job's end", lambda: Heard().end(success(repeated=True))),
    Path("result again, answered from the log", repeated),
    Path(
        "question that wants an address opened",
        lambda: Heard().end(question(mode="url", **ADDRESS)),
    ),
    Path("question for a secret", lambda: Heard().end(question(requestedSchema=secret()))),
    Path("question that is not put to people here", lambda: Heard().end(question())),
    Path("question that a person declined", lambda: declined("denied")),
    Path("question that nobody answered", lambda: declined("expired")),
    Path("what a server said after its question was cancelled", lambda: declined("denied", after_cancel=EVIL)),
    Path("the same, and nobody answered", lambda: declined("expired", after_cancel=EVIL * 1_000)),
    Path("schema of a tool that has changed", changed),
    Path("`recall_details` of an untrusted result", lambda: Heard().end(success(LONG)).recalled()),
    Path("`recall_details` of an untrusted error", lambda: Heard().end(failure("timeout", LONG)).recalled()),
    Path("value of a program", lambda: program(Completed(value=EVIL, printed="", asked=1))),
    Path("what a program prints", lambda: program(Completed(value=None, printed=EVIL, asked=1))),
    Path("error of a program", lambda: program(Failed("raised", EVIL))),
    Path("answer of a tainted child", lambda: child(e.JobCompleted, answer=EVIL)),
    Path("failure of a tainted child", lambda: child(e.JobFailed, error=Failure(code="refused", message=EVIL))),
    Path("cancel of a tainted child", lambda: child(e.JobCancelled, reason=EVIL)),
    Path("task of a tainted parent", child_task, framed=False, why=A_TASK),
    Path("summary of the conversation", compacted),
    Path("outline in the place of a summary", outlined),
    Path("outline of an outline", lambda: outlined(3)),
    Path("name of an entity, told as it comes", entities),
    Path("name of an entity, told with a summary", known_entities),
    Path("name of an entity, told where a history is lost", lost_history),
    Path("earlier turn of the session", session),
    Path("passage of an untrusted document", knowledge),
    Path("untrusted text that the job is given", lambda: given("text/plain")),
    Path("untrusted PDF that the job is given", lambda: given("application/pdf")),
    Path("untrusted image that the job is given", lambda: given("image/png")),
    Path("untrusted text that its agent pins", lambda: given("text/plain", pinned=True)),
    Path("definition of a tool that comes later", discovered, why=ACCEPTED),
    Path("definition that `tool_search` finds", searched, taints=False, why=ACCEPTED),
    Path("definition of a tool that was called unknown", unloaded, taints=False, why=ACCEPTED),
)
