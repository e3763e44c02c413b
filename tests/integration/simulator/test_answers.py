"""What else the simulated providers answer: structured output, stops, embeddings, counts, lists."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from pydantic import BaseModel

from wayline.simulator import Say

ASK: Any = [{"role": "user", "content": "What is JetStream?"}]
TOOL = {"name": "search", "description": "Finds.", "input_schema": {"type": "object", "properties": {}}}


class City(BaseModel):
    name: str
    people: int


async def test_every_wire_format_returns_a_value_satisfying_the_schema(providers):
    one = await providers.anthropic.messages.parse(
        model="claude-sonnet-5-5", max_tokens=99, messages=ASK, output_format=City
    )
    two = await providers.openai.responses.parse(model="gpt-6-sol", input=ASK, text_format=City)
    three = await providers.openai.chat.completions.parse(model="local-chat", messages=ASK, response_format=City)
    async with providers.openai.responses.stream(model="gpt-6-sol", input=ASK, text_format=City) as events:
        four = await events.get_final_response()

    expected = City(name="What is JetStream?", people=1)
    assert one.parsed_output == two.output_parsed == three.choices[0].message.parsed == four.output_parsed == expected


async def test_the_json_protocol_gets_an_envelope_unless_the_reply_is_raw(providers):
    system = 'Answer with {"thinking", "action", "tool_calls", "response", "confidence"}.'
    messages: Any = [{"role": "system", "content": system}, *ASK]
    answers = []
    for say in (
        Say(tools=(("search", {"q": "x"}),)),
        Say(text="A log.", thinking="Simple.", confidence=0.4),
        Say(text="not JSON", raw=True),
    ):
        providers.simulator.script = lambda asked, say=say: say
        answer = await providers.openai.chat.completions.create(model="local-chat", messages=messages)
        answers.append(answer.choices[0].message.content)

    first, second = json.loads(answers[0]), json.loads(answers[1])
    assert (first["action"], first["tool_calls"][0]["tool"]) == ("tool", "search")
    assert first["tool_calls"][0]["parameters"] == {"q": "x"}
    assert (second["action"], second["response"], second["confidence"]) == ("respond", "A log.", 0.4)
    assert answers[2] == "not JSON"


@pytest.mark.parametrize(
    ("stop", "reason"),
    [
        ("max_tokens", ("max_tokens", "incomplete", "length")),
        ("refused", ("refusal", "completed", "content_filter")),
        ("end", ("end_turn", "completed", "stop")),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
async def test_each_provider_has_its_own_word_for_why_it_stopped(providers, stop, reason, stream):
    providers.simulator.script = lambda asked: Say(text="No more.", stop=stop)
    claude: Any = {"model": "claude-sonnet-5-5", "max_tokens": 99, "messages": ASK}
    if stream:
        async with providers.anthropic.messages.stream(**claude) as events:
            one = await events.get_final_message()
        raw = await providers.openai.responses.create(model="gpt-6-sol", input=ASK, stream=True)
        two = [event async for event in raw][-1].response
        async with providers.openai.chat.completions.stream(model="local-chat", messages=ASK) as events:
            three = [event async for event in events if event.type == "chunk"][-1].snapshot
    else:
        one = await providers.anthropic.messages.create(**claude)
        two = await providers.openai.responses.create(model="gpt-6-sol", input=ASK)
        three = await providers.openai.chat.completions.create(model="local-chat", messages=ASK)

    assert (one.stop_reason, two.status, three.choices[0].finish_reason) == reason
    assert (two.incomplete_details is not None) == (stop == "max_tokens")
    assert (two.output[0].content[0].type == "refusal") == (stop == "refused")


async def test_thinking_is_streamed_as_a_summary_where_the_script_wants_it(providers):
    for summarised, event in (
        (True, "response.reasoning_summary_text.delta"),
        (False, "response.reasoning_text.delta"),
    ):
        providers.simulator.script = lambda asked, so=summarised: Say(text="a", thinking="I think.", summarised=so)
        stream = await providers.openai.responses.create(
            model="gpt-6-sol", input=ASK, stream=True, reasoning={"summary": "auto"}
        )
        heard = [(e.type, e.delta) for e in [e async for e in stream] if "reasoning" in e.type and hasattr(e, "delta")]
        assert heard == [(event, "I think.")]


async def test_openai_thinking_is_hidden_unless_a_summary_is_requested(providers):
    providers.simulator.script = lambda asked: Say(text="a", thinking="I think.")
    answer = await providers.openai.responses.create(model="gpt-6-sol", input=ASK, store=False)

    assert "I think." not in answer.to_json()
    assert answer.usage.output_tokens_details.reasoning_tokens == 5
    assert answer.usage.output_tokens == 9


async def test_a_script_can_fix_what_is_counted(providers):
    providers.simulator.script = lambda asked: Say(text="a", output_tokens=1_234)
    async with providers.anthropic.messages.stream(model="claude-haiku-5-5", max_tokens=9, messages=ASK) as events:
        answer = await events.get_final_message()

    assert answer.usage.output_tokens == providers.charge.usage.output == 1_234


async def test_counting_is_what_is_charged_and_is_free(providers):
    prompt: Any = {"model": "claude-sonnet-5-5", "system": "Be brief.", "messages": ASK, "tools": [TOOL]}
    counted = await providers.anthropic.messages.count_tokens(**prompt)
    answer = await providers.anthropic.messages.create(**prompt, max_tokens=9)

    assert counted.input_tokens == answer.usage.input_tokens
    assert len(providers.simulator.bill.charges) == 1


async def test_embeddings_say_the_same_in_both_encodings_and_are_charged_for(providers):
    texts = ["a", "b", "a"]
    coded = await providers.openai.embeddings.create(model="text-embedding-3-small", input=texts)
    plain = await providers.openai.embeddings.create(
        model="text-embedding-3-small", input=texts, encoding_format="float"
    )
    small = await providers.openai.embeddings.create(model="text-embedding-3-small", input="a", dimensions=8)

    vectors = [row.embedding for row in coded.data]
    assert vectors == [row.embedding for row in plain.data]
    assert vectors[0] == vectors[2] != vectors[1]
    assert math.isclose(sum(x * x for x in vectors[0]), 1.0, abs_tol=1e-5)
    assert (len(vectors[0]), len(small.data[0].embedding)) == (1_536, 8)
    # 3 inputs of 4 tokens at $0.02 a million.
    assert f"{providers.simulator.bill.charges[0].usd:f}" == "0.000000240"


async def test_each_provider_lists_its_own_models(providers):
    anthropic = [model.id async for model in providers.anthropic.models.list()]
    others = [model.id async for model in providers.openai.models.list()]

    assert "claude-opus-5-5" in anthropic
    assert not set(anthropic) & set(others)
    assert (await providers.anthropic.models.retrieve("claude-haiku-4-5")).max_input_tokens == 200_000
    assert (await providers.openai.models.retrieve("gpt-6-sol")).id == "gpt-6-sol"


async def test_the_attempt_id_is_on_the_bill(providers):
    await providers.openai.responses.create(
        model="gpt-6-sol", input="hi", extra_headers={"X-Wayline-Attempt": "j1/2/1"}
    )

    assert list(providers.simulator.bill.by_attempt) == ["j1/2/1"]
    assert providers.simulator.requests[0].attempt == "j1/2/1"
