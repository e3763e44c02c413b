"""Tools that others described pass every provider's checks, and the arguments of their calls come back equal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pytest

from wayline.contracts.chat import TextPart, UserMessage
from wayline.contracts.models import ModelCard
from wayline.llm import Finished, Model, ModelRequest
from wayline.llm.anthropic import Anthropic
from wayline.llm.catalogue import bundled
from wayline.llm.json_protocol import JsonProtocol
from wayline.llm.openai import OpenAI
from wayline.llm.openai_chat import ChatCompletions
from wayline.simulator import Asked, Facts, Rates, Say, Simulator, known
from wayline.tool_registry.definitions.arguments import Arguments

from .function_sets import Case, cases, recorded

AT_ONCE = 16
GEMINI = "gemini-3.8-flash"
OWN = {name: Facts(name=name, provider="local", rates=Rates()) for name in ("local-chat", "local-json")}
MISFITS_MAX = 7
"""Calls that do not fit the schema that the set gives their function."""
WIRES = ("messages", "responses", "chat", "google", "words")

Tell = Callable[[str], None]

pytestmark = [pytest.mark.timeout(900)]


def card(wire: str) -> ModelCard:
    """Return a model that is asked over a wire."""
    if wire in {"chat", "words"}:
        tools = "json" if wire == "words" else "native"
        model = "local-json" if wire == "words" else "local-chat"
        return ModelCard(provider="chat", model=model, tier="standard", tools=tools)
    wanted = {"messages": "claude-sonnet-5-5", "responses": "gpt-6.1-terra", "google": GEMINI}[wire]
    # Without its host: the simulator is not at Google.
    return next(one.model_copy(update={"host": None}) for one in bundled() if one.model == wanted)


def adapter(wire: str, at: Simulator) -> Model:
    if wire == "messages":
        return Anthropic(at.url, api_key="simulated")
    if wire == "responses":
        return OpenAI(at.openai_url, api_key="simulated")
    chat = ChatCompletions(at.google_url if wire == "google" else at.openai_url, api_key="simulated")
    return JsonProtocol(chat) if wire == "words" else chat


async def ask(model: Model, over: ModelCard, case: Case) -> str | None:
    """Send a case's tools and have its calls made; return what differs, None where nothing does."""
    request = ModelRequest(
        card=over,
        system="Be brief.",
        messages=(UserMessage(parts=(TextPart(text=case.id),)),),
        tools=tuple(sorted(case.tools, key=lambda tool: tool.name)),
        max_output_tokens=8_000,
        attempt_id="acme/j1/1/m1",
    )
    try:
        last = [piece async for piece in model.stream(request)][-1]
    except Exception as error:
        return f"{case.id}: {error}"
    assert isinstance(last, Finished)
    made = tuple((call.tool, call.arguments) for call in last.message.tool_calls)
    return None if made == case.calls else f"{case.id}: {made} instead of {case.calls}"


async def differences(wire: str, asked: Sequence[Case]) -> list[str]:
    """Ask every case over one wire."""
    calls = {case.id: case.calls for case in asked}

    def script(request: Asked) -> Say:
        wanted = calls[request.text]
        return Say(tools=wanted) if wanted else Say(text="There is nothing to call.")

    at_once = asyncio.Semaphore(AT_ONCE)
    async with Simulator(script, models={**known(), **OWN}) as simulator:
        model, over = adapter(wire, simulator), card(wire)

        async def one(case: Case) -> str | None:
            async with at_once:
                return await ask(model, over, case)

        found = await asyncio.gather(*map(one, asked))
        await model.close()
    return [each for each in found if each is not None]


@pytest.mark.parametrize("wire", WIRES)
async def test_every_public_tool_is_taken_and_its_arguments_return(wire: str, tell: Tell):
    every = cases()

    differ = await differences(wire, every)

    calls = sum(len(case.calls) for case in every)
    tools = sum(len(case.tools) for case in every)
    tell(f"calls-bfcl-dev over {wire}: {tools} tools, {calls} calls, {len(differ)} of {len(every)} cases differ")
    assert differ == []


@pytest.mark.parametrize("wire", WIRES)
async def test_every_recorded_tool_is_taken_and_its_arguments_return(wire: str, tell: Tell):
    every = recorded()

    differ = await differences(wire, every)

    calls = sum(len(case.calls) for case in every)
    tell(f"recorded tools over {wire}: {calls} calls, {len(differ)} of {len(every)} cases differ")
    assert len(every) > 10
    assert differ == []


def misfits(asked: Sequence[Case]) -> list[str]:
    """Return the calls that their tools' schemas refuse."""
    arguments = Arguments()
    return [
        f"{case.id}: {name}: {problem}"
        for case in asked
        for name, given in case.calls
        if (problem := arguments.problem(next(t for t in case.tools if t.name == name).input_schema, given))
    ]


def test_the_registry_takes_the_calls_that_fit_their_schemas(tell: Tell):
    wrong = misfits(cases())

    tell(f"calls-bfcl-dev: {len(wrong)} calls do not fit the schemas that the set itself has")
    assert len(wrong) <= MISFITS_MAX, wrong


def test_the_calls_of_recorded_tools_fit_their_schemas():
    assert misfits(recorded()) == []
