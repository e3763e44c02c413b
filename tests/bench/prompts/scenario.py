"""A job of twenty steps that gives a prompt every reason to change, played with the executor's own functions.

The model is an adapter on a socket; the bus is not there. Tools come and go, context is injected, many tools run beside
each other, and one result is very long: all of it the same each time, so that only the assembly makes a difference.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

from wayline.contracts import events as e
from wayline.contracts.agents import AgentConfig
from wayline.contracts.chat import AssistantMessage, ChatMessage, NoteMessage
from wayline.contracts.jobs import Route, SubmitJob
from wayline.contracts.models import CacheRules, ModelCard
from wayline.contracts.tools import ToolDefinition, ToolReply
from wayline.executor.adapters.model_providers import CallProgress, ModelProviders
from wayline.executor.decide.actions import CallModel
from wayline.executor.decide.prepare_call import prepare_call
from wayline.executor.hold.log_writer import LogWriter
from wayline.executor.perform.model_call import note_intent
from wayline.executor.perform.tell_model import note_news
from wayline.executor.prompt.assemble import PromptHashes
from wayline.executor.prompt.shorten import RESULT_TOKENS_MAX, shown
from wayline.journal import Call, Head, Job, State
from wayline.llm import Model, ModelRequest, Piece
from wayline.llm.catalogue import bundled

STEPS = 20
BEGAN = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
SECONDS_A_STEP = 20
WINDOW_MESSAGES = 16
"""What the sliding window keeps, as a framework with a fixed memory would."""

CARDS = {
    card.provider: card for card in bundled() if card.name in {"anthropic/claude-sonnet-5-5", "openai/gpt-6.1-terra"}
}
"""The cards that jobs are routed by."""
INSTRUCTIONS = "You help the support desk of a shop. Look things up before you answer, and quote order numbers. " * 12
TASK = "Order 4711 arrived late, damaged and incomplete; find out why, and what the customer is owed. " * 42
"""About a thousand tokens."""


def _tool(name: str, about: str) -> ToolDefinition:
    properties = {"id": {"type": "string", "description": f"Which {about}."}, "detail": {"type": "boolean"}}
    return ToolDefinition(
        name=name,
        description=f"Read one {about} of the shop by its id, with its history when asked for details. " * 2,
        input_schema={"type": "object", "properties": properties, "required": ["id"]},
    )


_LASTING = tuple(_tool(f"shop__{about}", about) for about in ("carrier", "customer", "order", "parcel", "product"))
_FLAPPING = _tool("maps__route", "route")
_LATE = _tool("refunds__rule", "rule")


def listed(step: int) -> tuple[ToolDefinition, ...]:
    """What the registry lists before a step: one server comes and goes, another arrives in the middle."""
    more = [_FLAPPING] * (step % 3 != 0) + [_LATE] * (step >= 8)
    return tuple(sorted([*_LASTING, *more], key=lambda tool: tool.name))


def news(job: Job) -> list[NoteMessage]:
    """Context that arrives before some of the steps."""
    step = job.model.step + 1
    if step not in (1, 4, 9, 15):
        return []
    text = f"Before step {step}: " + "the customer wrote again. " * 20
    return [NoteMessage(label="CONTEXT" if step == 1 else "CONTEXT UPDATE", text=text)]


def says(step: int) -> tuple[str, tuple[tuple[str, dict[str, Any]], ...]]:
    """The model's words and calls at a step; at the twelfth it asks for more than a lookback of twenty blocks holds."""
    if step == STEPS:
        return "The customer is owed 12.50 for order 4711.", ()
    if step == 10:
        return "All parcels, then.", (("shop__parcel", {"id": "all", "detail": True}),)
    if step >= 8 and step % 4 == 0 and step != 12:
        return "A rule may say.", (("use_tool", {"name": "refunds__rule", "arguments": {"id": str(step)}}),)
    width = 14 if step == 12 else 3 if step % 5 == 0 else 1
    about = _LASTING[step % len(_LASTING)].name
    return f"Step {step}: I look this up.", tuple((about, {"id": f"{step}-{n}"}) for n in range(width))


def finds(tool: str, arguments: dict[str, Any]) -> str:
    """What a tool returns: some hundred tokens, once some twenty thousand."""
    rows = 900 if arguments.get("id") == "all" else 8
    return json.dumps([{"tool": tool, "row": n, "said": f"{arguments} was seen at place {n}"} for n in range(rows)])


async def play(card: ModelCard, model: Model, *, number: int = 1) -> list[e.Event]:
    """The whole job; returns its log. Jobs of another number share tools and system prompt, and no message."""
    player = _Player(card, model, number)
    for _ in range(STEPS):
        await player.step()
    return player.events


class _Player:
    def __init__(self, card: ModelCard, model: Model, number: int) -> None:
        bus: Any = SimpleNamespace(send=_unheard)
        log: Any = SimpleNamespace(tenant="t", job_id="j")
        self._writer = LogWriter(log, Head(1, State.ACTIVE, 0, ""), Job(), clock=self._now)
        self._hashes = PromptHashes()
        self._models = ModelProviders(bus, {card.provider: model})
        self._begin(card, number)

    @property
    def events(self) -> list[e.Event]:
        return self._writer._noted

    def _now(self) -> datetime:
        return BEGAN + timedelta(seconds=SECONDS_A_STEP * self._writer.job.model.step)

    def _begin(self, card: ModelCard, number: int) -> None:
        submit = SubmitJob(tenant="t", agent="desk", input=f"Case {number}. {TASK}")
        route = Route(provider=card.provider, model=card.model, tier=card.tier, reason="the only one")
        limits = e.Limits(max_steps=STEPS, max_seconds=1e6, max_output_tokens=4_096)
        self._writer.note(e.JobSubmitted, tenant="t", job=submit, content_hash="")
        self._writer.note(
            e.JobRouted,
            agent="desk",
            agent_version=1,
            config=AgentConfig(instructions=INSTRUCTIONS),
            route=route,
            limits=limits,
            candidates=e.Candidates(cards=(card,)),
        )

    async def step(self) -> None:
        step = self._writer.job.model.step + 1
        note_news(self._writer, listed(step), news)
        job = self._writer.job
        call = prepare_call(job, CallModel(step, 1), self._hashes, listed=listed(step))
        attempt = {"step": step, "attempt": 1, "attempt_id": call.request.attempt_id}
        note_intent(self._writer, call)
        finished = await self._models.call(self._writer.job, call.request, CallProgress(), answering=_unheard)
        self._writer.note(
            e.ModelCompleted,
            **attempt,
            message=finished.message,
            usage=finished.usage,
            cost_usd=None,
            stop_reason=finished.stop_reason,
            duration_ms=0,
        )
        for call in self._writer.job.tools.calls:
            self._run(call, step)

    def _run(self, call: Call, step: int) -> None:
        meant = call.meant
        reply = ToolReply(status="success", content=finds(meant.tool, meant.arguments))
        fields = shown(self._writer.job, meant.tool, reply, step=step, call=meant.call, tokens_max=RESULT_TOKENS_MAX)
        self._writer.note(e.ToolCompleted, step=step, call=meant.call, tool=meant.tool, status="success", **fields)


async def _unheard(*_: Any) -> None:
    return None


class Reshaped:
    """A model that is sent something else than our assembly: what other ways of building a prompt would send."""

    def __init__(self, model: Model, reshape: Callable[[ModelRequest], ModelRequest]) -> None:
        self._model = model
        self._reshape = reshape

    def stream(self, request: ModelRequest) -> AsyncGenerator[Piece]:
        return self._model.stream(self._reshape(request))

    async def close(self) -> None:
        await self._model.close()


def sliding_window(request: ModelRequest) -> ModelRequest:
    """The task and the newest messages, beginning where no result stands without its call."""
    first, rest = request.messages[0], request.messages[1:]
    kept = rest if len(rest) <= WINDOW_MESSAGES else _from_an_answer(rest[-WINDOW_MESSAGES:])
    return replace(request, messages=(first, *kept), breakpoints=(0, len(kept)))


def _from_an_answer(messages: tuple[ChatMessage, ...]) -> tuple[ChatMessage, ...]:
    begins = next((n for n, one in enumerate(messages) if isinstance(one, AssistantMessage)), 0)
    return messages[begins:]


def relisted_tools(request: ModelRequest) -> ModelRequest:
    """The tools that are there at each step, as they are there."""
    step = 1 + sum(isinstance(message, AssistantMessage) for message in request.messages)
    return replace(request, tools=listed(step))


def clock_in_the_system_prompt(request: ModelRequest) -> ModelRequest:
    """The time of each call where many put it."""
    answers = sum(isinstance(message, AssistantMessage) for message in request.messages)
    now = BEGAN + timedelta(seconds=SECONDS_A_STEP * answers)
    return replace(request, system=f"It is {now:%Y-%m-%d %H:%M:%S}.\n{request.system}")


def without_marks(request: ModelRequest) -> ModelRequest:
    """No breakpoints, for whoever sets one of its own."""
    return replace(request, card=request.card.model_copy(update={"cache": CacheRules()}), breakpoints=())
