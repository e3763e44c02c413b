"""What a call is asked with: the agent's temperature and effort, the reasoning slot's own defaults."""

from decimal import Decimal
from typing import Any, get_args

import pytest

from wayline.contracts import events as e
from wayline.contracts.agents import AgentConfig
from wayline.contracts.chat import Attachment, ImagePart, Part, TextPart
from wayline.contracts.models import MediaRules, ModelCard, Slot
from wayline.executor.decide.worst_case import most_tokens, worst_usd
from wayline.executor.prompt.assemble import PromptHashes
from wayline.executor.prompt.model_request import model_request
from wayline.llm import ModelRequest
from wayline.routing.estimate import first_call, shape_of

from ..logs import PRIMARY, ROUTE, Log, card

MAP = Attachment(
    document_id="map", name="map", media_type="image/png", sha256="a" * 64, size_bytes=400, width=280, height=560
)


def asked(config: AgentConfig | None = None, of: ModelCard = PRIMARY, **route: Any) -> ModelRequest:
    log = Log(config=config or AgentConfig(), cards=(of,))
    log.say(e.JobRerouted, route=ROUTE.model_copy(update=route), cause="fallback")
    return model_request(log.job, step=1, attempt=1, tools=())


def test_the_agents_temperature_and_the_smaller_output_limit_are_sent():
    request = asked(AgentConfig(temperature=0.2))

    assert (request.temperature, request.max_output_tokens) == (0.2, 100)
    assert (request.effort, request.thinking_tokens) == (None, None)


def test_the_reasoning_slot_thinks_hard_unless_the_agent_says_how():
    assert (asked(slot="reasoning").effort, asked(slot="reasoning").thinking_tokens) == ("high", None)
    assert asked(AgentConfig(effort="low"), slot="reasoning").effort == "low"


def test_budgeted_thinking_takes_no_tokens_from_the_answer():
    counting = card("acme/primary", reasoning="budget", output_limit=20_000)
    small = card("acme/primary", reasoning="budget", output_limit=8_000)

    request = asked(of=counting, slot="reasoning")

    assert (request.thinking_tokens, request.max_output_tokens) == (10_000, 10_100)
    assert asked(of=small, slot="reasoning").max_output_tokens == 8_000
    assert asked(of=counting).thinking_tokens is None


@pytest.mark.parametrize("reasoning", ["adaptive", "effort"])
@pytest.mark.parametrize(
    ("slot", "effort", "room"),
    [
        ("reasoning", None, 10_000),
        ("reasoning", "medium", 4_096),
        ("reasoning", "none", 0),
        ("primary", None, 0),
        ("primary", "high", 10_000),
    ],
)
def test_thinking_by_effort_has_room_beside_the_answer(reasoning, slot, effort, room):
    thinker = card("acme/primary", reasoning=reasoning, output_limit=20_000)
    request = asked(AgentConfig(effort=effort), of=thinker, slot=slot)

    assert (request.thinking_tokens, request.max_output_tokens) == (None, 100 + room)


@pytest.mark.parametrize("slot", get_args(Slot))
@pytest.mark.parametrize("instructions", ["", "Be brief.", "Say what you know, and where you know it from. " * 200])
@pytest.mark.parametrize("pinned", [(), (TextPart(text="By the book. " * 90), ImagePart(document_id="map"))])
def test_the_router_holds_no_more_than_the_first_call_needs(slot: Slot, instructions: str, pinned: tuple[Part, ...]):
    of = card("acme/primary", reasoning="budget", output_limit=20_000, images=True, media=MediaRules(patches_max=900))
    config = AgentConfig(instructions=instructions, tools=(), max_output_tokens=100, pinned=pinned)
    named = (MAP,) if pinned else ()
    log = Log(config=config, cards=(of,), attachments=named).say(
        e.JobRerouted, route=ROUTE.model_copy(update={"slot": slot}), cause="fallback"
    )
    request = model_request(log.job, step=1, attempt=1, tools=())

    assert log.job.life.submitted is not None
    wanted = first_call(of, shape_of(log.job.life.submitted, config, attachments=named), slot=slot)
    asked_for = worst_usd(request, most_tokens(request, PromptHashes().segments(request)), at=None)

    assert wanted is not None and asked_for is not None
    assert asked_for * Decimal("0.8") < wanted <= asked_for
