"""The simulator writes only what providers were recorded to write: event orders, keys and JSON types."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest

from wayline.simulator import Say, Simulator, turns

from ..recordings import recordings
from ..shape import CUT_OFF, Shape, shape_of

SCHEMA = {
    "type": "object",
    "properties": {"q": {"type": "string"}},
    "required": ["q"],
    "additionalProperties": False,
}
ASK: Any = [{"role": "user", "content": "What is JetStream?"}]
LONG = "word " * 6_000
SAYS = (
    Say(text="A word or two. " * 10),
    Say(text="Let me look.", tools=(("search", {"q": "a"}), ("search", {"q": "b"})), thinking="I think. " * 9),
    Say(tools=(("search", {"q": "a"}),)),
    Say(text="Seen.", thinking="I think."),
    Say(value={"q": "x"}),
    Say(text="Too lo", stop="max_tokens"),
)
FAMILIES: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "anthropic": (
        "/v1/messages",
        [
            {
                "model": "claude-sonnet-5-5",
                "max_tokens": 99,
                "system": [{"type": "text", "text": LONG, "cache_control": {"type": "ephemeral"}}],
                "messages": ASK,
                "thinking": {"type": "adaptive"},
                "tools": [{"name": "search", "description": "Finds.", "input_schema": SCHEMA}],
            }
        ],
    ),
    "openai-responses": (
        "/v1/responses",
        [
            {
                "model": "gpt-6-sol",
                "instructions": LONG,
                "input": ASK,
                "store": False,
                "reasoning": reasoning,
                "include": include,
                "text": {"format": form},
                "tools": [
                    {"type": "function", "name": "search", "description": "F", "parameters": SCHEMA, "strict": True}
                ],
            }
            for reasoning, include, form in (
                ({"effort": "low", "summary": "auto"}, ["reasoning.encrypted_content"], {"type": "text"}),
                ({"effort": "low"}, [], {"type": "json_schema", "name": "n", "schema": SCHEMA, "strict": True}),
            )
        ],
    ),
    "openai-chat": (
        "/v1/chat/completions",
        [
            {
                "model": model,
                "messages": [{"role": "system", "content": LONG}, *ASK],
                "stream_options": {"include_usage": True},
                "reasoning_effort": effort,
                "tools": [{"type": "function", "function": {"name": "search", "parameters": SCHEMA}}],
            }
            for model, effort in (("gpt-6-sol", "none"), ("local-chat", "low"))
        ],
    ),
    "openai-embeddings": (
        "/v1/embeddings",
        [
            {"model": "text-embedding-3-small", "input": ["a", "b"], "encoding_format": encoding}
            for encoding in ("float", "base64")
        ],
    ),
}
UNRECORDED: dict[str, str] = {
    "response.incomplete": "no recorded stream reached its output limit; the event is in the API reference",
    "incomplete_details": "nor did a recorded answer in one piece",
    "format<json_schema>": "no recorded stream was asked for a JSON Schema; answers in one piece were",
}
"""What the simulator writes though nobody was recorded writing it, and why."""


def recorded(family: str, path: str) -> Shape:
    """Answers with status 200 to requests of this kind, whoever gave them."""
    ending = path.removeprefix("/v1")
    found = [one for one in recordings(family) if one.status == 200 and one.path.endswith(ending)]
    return shape_of((one.streamed, one.body.decode() if one.streamed else one.answer) for one in found)


async def simulated(path: str, bodies: list[dict[str, Any]]) -> Shape:
    answers: list[tuple[bool, Any]] = []
    async with Simulator() as simulator, aiohttp.ClientSession(headers={"x-api-key": "k"}) as session:
        for say in SAYS:
            simulator.script = turns(say)
            for body in bodies:
                for stream in (True, False) if path != "/v1/embeddings" else (False,):
                    asked = {**body, "stream": stream} if stream else body
                    async with session.post(simulator.url + path, json=asked) as response:
                        assert response.status == 200, await response.text()
                        answers.append((stream, await response.text() if stream else await response.json()))
    return shape_of(answers)


@pytest.fixture(params=FAMILIES)
async def shapes(request: pytest.FixtureRequest) -> tuple[Shape, Shape]:
    path, bodies = FAMILIES[request.param]
    return recorded(request.param, path), await simulated(path, bodies)


async def test_events_follow_each_other_only_as_recorded(shapes):
    real, ours = shapes
    real_pairs = {pair for pair in real.pairs if CUT_OFF not in pair}

    assert {pair for pair in ours.pairs if not UNRECORDED.keys() & set(pair)} <= real_pairs


async def test_keys_and_types_are_only_recorded_ones(shapes, tell, request):
    real, ours = shapes

    strange = {at for at in ours.types - real.types if not any(name in ".".join(at) for name in UNRECORDED)}

    family = request.node.callspec.params["shapes"]
    tell(f"simulator, {family}: {len(ours.pairs)} orders of events, {len(ours.types)} keys, {len(strange)} strange")
    assert not strange


async def test_keys_that_are_always_there_are_there(shapes):
    real, ours = shapes

    missing = {(path, key) for path in ours.objects for key in real.always(path) - ours.always(path)}

    assert not missing
