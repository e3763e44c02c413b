"""Jobs played with the executor's own functions: every reason to change a prompt, and no bus."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, Literal

from hypothesis import strategies as st

from wayline.contracts import events as e
from wayline.contracts.agents import AgentConfig
from wayline.contracts.chat import AssistantMessage, NoteMessage, ToolCall
from wayline.contracts.jobs import Failure, Route, SubmitJob
from wayline.contracts.models import CacheRules, ModelCard
from wayline.contracts.money import Usage
from wayline.contracts.tools import ToolDefinition, ToolError, ToolReply
from wayline.executor.decide.actions import CallModel
from wayline.executor.decide.prepare_call import prepare_call
from wayline.executor.hold.log_writer import LogWriter
from wayline.executor.perform.model_call import note_intent
from wayline.executor.perform.tell_model import note_news
from wayline.executor.prompt.assemble import Prompt, PromptHashes, assemble
from wayline.executor.prompt.shorten import shown
from wayline.journal import Head, Job, State, encode, fold, read_record

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CARD = ModelCard(provider="p", model="m", tier="standard", cache=CacheRules(kind="breakpoints", ttl_s=300))
OTHER = ModelCard(provider="p", model="n", tier="premium")
ROUTE = Route(provider="p", model="m", tier="standard", reason="r")
HEAD = Head(1, State.ACTIVE, 0, "hash")


def tool(name: str, version: int = 1) -> ToolDefinition:
    return ToolDefinition(name=name, description=f"{name}, {version}", input_schema={"type": "object"})


@dataclass
class Talk:
    """A job played with the executor's own functions, one step after another."""

    listed: tuple[ToolDefinition, ...] = (tool("a"), tool("b"))
    patterns: tuple[str, ...] = ("*",)
    events: list[e.Event] = field(default_factory=list)
    prompts: list[Prompt] = field(default_factory=list)
    wait_s: float = 1

    def __post_init__(self) -> None:
        self.writer = self._writer(Job())
        self.hashes = PromptHashes()
        job = SubmitJob(tenant="t", agent="helper", input="go")
        config = AgentConfig(instructions="Be careful.", tools=self.patterns)
        limits = e.Limits(max_steps=99, max_seconds=1e6, max_output_tokens=10)
        self.note(e.JobSubmitted, tenant="t", job=job, content_hash="")
        self.note(
            e.JobRouted,
            agent="helper",
            agent_version=1,
            config=config,
            route=ROUTE,
            limits=limits,
            candidates=e.Candidates(cards=(CARD, OTHER)),
        )

    def _writer(self, job: Job) -> LogWriter:
        log: Any = SimpleNamespace(tenant="t", job_id="j")
        return LogWriter(log, HEAD, job, clock=lambda: NOW + timedelta(seconds=self.wait_s * self.writer.job.seq))

    @property
    def job(self) -> Job:
        return self.writer.job

    def note(self, kind: type[e.Event], **payload: Any) -> None:
        self.events.append(self.writer.note(kind, **payload))

    def ask(self, *notes: NoteMessage) -> e.ModelRequested:
        """One model call as far as its intent."""
        before = len(self.writer._noted)
        note_news(self.writer, self.listed, lambda _: notes)
        repeated = self.job.model.failed is not None
        step, attempt = self.job.model.step + (not repeated), self.job.model.attempt + 1
        call = prepare_call(self.job, CallModel(step, attempt), self.hashes, listed=self.listed)
        note_intent(self.writer, call)
        self.events += self.writer._noted[before:]
        self.prompts.append(assemble(self.job))
        assert self.job.model.asked is not None
        return self.job.model.asked

    def answer(self, *calls: ToolCall, text: str = "") -> None:
        message = AssistantMessage(text=text, tool_calls=calls)
        named = {"step": self.job.model.step, "attempt": 1, "attempt_id": "x"}
        done = {"usage": Usage(input=1), "cost_usd": None, "stop_reason": "end", "duration_ms": 1}
        self.note(e.ModelCompleted, **named, message=message, **done)

    def fail(self) -> None:
        named = {"step": self.job.model.step, "attempt": self.job.model.attempt, "attempt_id": "x"}
        self.note(e.ModelFailed, **named, error=Failure(code="overloaded", message="busy"), retryable=True)

    def finish(self, call: str, content: str = "found", *, failed: bool = False) -> None:
        named = {"step": self.job.model.step, "call": call, "tool": "a"}
        error = ToolError(code="tool_failed", message=content) if failed else None
        reply = ToolReply(status="failed" if failed else "success", content="" if failed else content, error=error)
        fields = shown(self.job, "a", reply, step=self.job.model.step, call=call, tokens_max=300)
        self.note(e.ToolCompleted, **named, status=reply.status, **fields)

    def restart(self) -> None:
        """Another process goes on with nothing but the log, as it was written."""
        self.writer = self._writer(fold(read_record(encode(self.events))))
        self.hashes = PromptHashes()
        self.note(e.JobClaimed, executor="x", epoch=self.job.life.epoch + 1, owner="1:1", attempt=1)


@dataclass(frozen=True)
class Step:
    """What happens between two answers of the model."""

    versions: tuple[int, ...]
    """Of the tools a … d: 0 is not listed."""
    notes: tuple[str, ...] = ()
    failures: int = 0
    calls: tuple[tuple[str, bool], ...] = ()
    """The content of each call's result, and whether it failed."""
    restart: bool = False
    turn: Literal["reroute", "compact"] | None = None
    """Before the model is asked."""


def play(talk: Talk, step: Step) -> None:
    talk.listed = tuple(tool(name, version) for name, version in zip("abcd", step.versions, strict=True) if version)
    if step.turn == "reroute":
        model = "m" if talk.job.routing.card is OTHER else "n"
        talk.note(e.JobRerouted, route=ROUTE.model_copy(update={"model": model}), cause="fallback")
    elif step.turn == "compact":
        talk.note(e.ContextCompacted, note=NoteMessage(label="CONTEXT", text="much was said"), kept=1)
    notes = [NoteMessage(label="CONTEXT UPDATE", text=text) for text in step.notes]
    talk.ask(*notes)
    for _ in range(step.failures):
        talk.fail()
        talk.ask(*notes)
    talk.answer(*(ToolCall(call=str(n), tool="a", arguments={"n": n}) for n in range(len(step.calls))), text="so")
    if step.restart:
        talk.restart()
    # In the reverse of the order in which they were asked for: the fold puts them right.
    for n, (content, failed) in reversed(list(enumerate(step.calls))):
        talk.finish(str(n), content, failed=failed)


straight = st.builds(
    Step,
    versions=st.tuples(*[st.integers(0, 2)] * 4),
    notes=st.lists(st.sampled_from(["one", "two", "three"]), max_size=2).map(tuple),
    failures=st.integers(0, 2),
    calls=st.lists(
        st.tuples(st.sampled_from(["ok", "long " * 600, "[" + "1," * 3_000 + "1]"]), st.booleans()), max_size=3
    ).map(tuple),
    restart=st.booleans(),
    turn=st.none(),
)
turning = st.tuples(straight, st.sampled_from([None, None, "reroute", "compact"])).map(
    lambda drawn: replace(drawn[0], turn=drawn[1])
)
