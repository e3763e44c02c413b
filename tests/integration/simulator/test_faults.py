"""Each injected fault, as the SDKs see it, and what the provider charges for it."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from wayline.simulator import BLOCK_TOKENS, NO_FAULT, Fault, Say, Simulator, block_tokens, seeded
from wayline.testkit import until

from .sdks import anthropic, openai

TEXT = "word " * 100
ASK: Any = [{"role": "user", "content": "hi"}]
REQUESTS = {
    "/v1/messages": {"model": "claude-sonnet-5-5", "max_tokens": 999, "messages": ASK},
    "/v1/responses": {"model": "gpt-6-sol", "input": "hi"},
    "/v1/chat/completions": {"model": "gpt-6-sol", "messages": ASK, "stream_options": {"include_usage": True}},
}
INPUT_TOKENS = 4
OUTPUT_TOKENS = 128


@asynccontextmanager
async def reading(providers, path, **more):
    """The raw response to a streamed request."""
    async with aiohttp.ClientSession(headers={"x-api-key": "k", "X-Wayline-Attempt": "j/1/1"}) as session:
        async with session.post(
            providers.simulator.url + path, json={**REQUESTS[path], "stream": True, **more}
        ) as response:
            yield response


async def settled(providers):
    """The bill's only charge, once it is written."""
    await until(lambda: providers.simulator.bill.charges, why="the request is on the bill")
    return providers.charge


def fails(providers, fault: Fault, **say) -> None:
    providers.simulator.script = lambda asked: Say(text=TEXT, fault=fault, **say)


@pytest.mark.parametrize(
    ("fault", "one", "two"),
    [
        (Fault(error="rate_limited"), (429, "rate_limit_error"), (429, "rate_limit_exceeded")),
        (Fault(error="spend_cap"), (429, "rate_limit_error"), (429, "insufficient_quota")),
        (Fault(error="spend_cap", status=400), (400, "invalid_request_error"), (400, "insufficient_quota")),
        (Fault(error="overloaded"), (529, "overloaded_error"), (503, None)),
        (Fault(error="server_error"), (500, "api_error"), (500, None)),
    ],
)
async def test_an_error_has_the_provider_s_shape_and_costs_nothing(providers, fault, one, two):
    fails(providers, fault)
    with pytest.raises(anthropic.APIStatusError) as first:
        await providers.anthropic.messages.create(**REQUESTS["/v1/messages"])
    with pytest.raises(openai.APIStatusError) as second:
        await providers.openai.responses.create(model="gpt-6-sol", input="hi")

    assert (first.value.status_code, first.value.body["error"]["type"]) == one
    assert (second.value.status_code, second.value.code) == two
    assert "retry-after" not in first.value.response.headers
    assert [charge.outcome for charge in providers.simulator.bill.charges] == ["refused", "refused"]
    assert providers.simulator.bill.usd == 0


async def test_a_rate_limit_can_say_when_to_come_back(providers):
    fails(providers, Fault(error="rate_limited", retry_after_s=7))
    with pytest.raises(anthropic.RateLimitError) as refused:
        await providers.anthropic.messages.create(**REQUESTS["/v1/messages"])
    assert refused.value.response.headers["retry-after"] == "7"


async def test_a_spend_cap_differs_from_a_rate_limit_by_message(providers):
    fails(providers, Fault(error="spend_cap"))
    with pytest.raises(anthropic.RateLimitError, match="usage limits"):
        await providers.anthropic.messages.create(**REQUESTS["/v1/messages"])
    with pytest.raises(openai.RateLimitError, match="current quota"):
        await providers.openai.responses.create(model="gpt-6-sol", input="hi")


@pytest.mark.parametrize("path", REQUESTS)
@pytest.mark.parametrize("at", [1, 700, 2_500])
async def test_a_stream_cut_at_a_byte_charges_what_was_sent(providers, path, at):
    fails(providers, Fault(cut_at_byte=at))
    got = b""
    async with reading(providers, path) as response:
        assert response.status == 200
        with pytest.raises(aiohttp.ClientPayloadError):
            async for chunk in response.content.iter_any():
                got += chunk

    assert len(got) == at
    charge = await settled(providers)
    assert (charge.outcome, charge.usage_delivered, charge.attempt) == ("cut", False, "j/1/1")
    assert charge.usage.input == INPUT_TOKENS
    assert charge.usage.output < OUTPUT_TOKENS
    # The client never knows of more than is charged for.
    assert charge.usage.output >= block_tokens("word " * got.count(b"word ")) - BLOCK_TOKENS
    assert charge.usage.output <= 1 or at > 1


@pytest.mark.parametrize("path", REQUESTS)
async def test_a_cut_after_the_final_usage_is_charged_as_that_says(providers, path):
    fails(providers, NO_FAULT, output_tokens=999)
    async with reading(providers, path) as response:
        whole = await response.read()
    fails(providers, Fault(cut_at_byte=len(whole) - 2), output_tokens=999)
    async with reading(providers, path) as response:
        with pytest.raises(aiohttp.ClientPayloadError):
            await response.read()

    await until(lambda: len(providers.simulator.bill.charges) == 2, why="both requests are on the bill")
    # Responses says it with its last event, which the cut falls into.
    delivered = path != "/v1/responses"
    assert providers.charge.usage_delivered == delivered
    assert providers.charge.usage.output == (999 if delivered else OUTPUT_TOKENS)


async def test_a_cut_unstreamed_answer_is_charged_in_full(providers):
    fails(providers, Fault(cut_at_byte=100))
    with pytest.raises(anthropic.APIConnectionError):
        await providers.anthropic.messages.create(**REQUESTS["/v1/messages"])

    charge = await settled(providers)
    assert (charge.outcome, charge.usage_delivered, charge.usage.output) == ("cut", False, OUTPUT_TOKENS)


async def test_anthropic_reports_overload_inside_a_200(providers):
    fails(providers, Fault(overload_after_events=6))
    with pytest.raises(anthropic.APIStatusError) as failed:
        async with providers.anthropic.messages.stream(**REQUESTS["/v1/messages"]) as events:
            await events.get_final_message()

    assert (failed.value.status_code, failed.value.type) == (200, "overloaded_error")
    charge = await settled(providers)
    assert (charge.outcome, charge.usage_delivered) == ("failed", False)
    assert 0 < charge.usage.output < OUTPUT_TOKENS


async def test_openai_reports_overload_inside_a_200(providers):
    fails(providers, Fault(overload_after_events=6))
    with pytest.raises(openai.APIError):
        stream = await providers.openai.chat.completions.create(**REQUESTS["/v1/chat/completions"], stream=True)
        async for _ in stream:
            pass
    stream = await providers.openai.responses.create(model="gpt-6-sol", input="hi", stream=True)
    kinds = []
    try:
        kinds = [event.type async for event in stream]
    except openai.APIError:
        kinds = ["error"]
    assert kinds[-1] == "error"


@pytest.mark.parametrize("stream", [True, False])
async def test_a_response_failed_at_its_end_is_charged(providers, stream):
    fails(providers, Fault(fails_at_end=True))
    async with reading(providers, "/v1/responses", stream=stream) as response:
        body = await response.text()

    assert '"status":"failed"' in body and '"code":"server_error"' in body
    charge = await settled(providers)
    assert (charge.outcome, charge.usage_delivered, charge.usage.output) == ("failed", True, OUTPUT_TOKENS)


@pytest.mark.parametrize("size", [1, 7])
async def test_dripping_bytes_are_put_together_again(providers, size):
    fails(providers, Fault(drip_bytes=size), tools=(("search", {"q": "é"}),))
    async with providers.anthropic.messages.stream(**REQUESTS["/v1/messages"]) as events:
        answer = await events.get_final_message()
    async with providers.openai.responses.stream(model="gpt-6-sol", input="hi") as events:
        answered = await events.get_final_response()

    assert answer.content[0].text == TEXT == answered.output_text
    assert answer.content[1].input == {"q": "é"}


async def test_malformed_arguments_are_no_json(providers):
    fails(providers, Fault(malformed_arguments=True), tools=(("search", {"q": "x"}),))
    answered = await providers.openai.responses.create(model="gpt-6-sol", input="hi")
    completed = await providers.openai.chat.completions.create(model="gpt-6-sol", messages=ASK)
    pieces = ""
    async for event in await providers.anthropic.messages.create(**REQUESTS["/v1/messages"], stream=True):
        if event.type == "content_block_delta" and event.delta.type == "input_json_delta":
            pieces += event.delta.partial_json

    assert answered.output[-1].arguments == completed.choices[0].message.tool_calls[0].function.arguments == pieces
    assert pieces == '{"q":"x",}'


async def test_arguments_can_be_scripted_as_they_are(providers):
    providers.simulator.script = lambda asked: Say(tools=(("search", "{'q': x}"),))
    answered = await providers.openai.responses.create(model="gpt-6-sol", input="hi")
    assert answered.output[-1].arguments == "{'q': x}"


@pytest.mark.parametrize("stream", [True, False])
async def test_missing_usage_is_charged_for_and_not_delivered(providers, stream):
    fails(providers, Fault(no_usage=True))
    for path in REQUESTS:
        async with reading(providers, path, stream=stream) as response:
            body = await response.text()
        assert '"output_tokens":' not in body
        assert '"completion_tokens":' not in body

    for charge in providers.simulator.bill.charges:
        assert (charge.outcome, charge.usage_delivered, charge.usage.output) == ("answered", False, OUTPUT_TOKENS)
        assert charge.usd > 0


async def test_chat_without_include_usage_delivers_none(providers):
    fails(providers, NO_FAULT)
    async with reading(providers, "/v1/chat/completions", stream_options=None) as response:
        assert '"usage"' not in await response.text()
    assert not (await settled(providers)).usage_delivered


async def test_a_client_that_leaves_while_it_waits_pays_nothing(providers):
    gate = asyncio.Event()
    fails(providers, Fault(hold=gate))
    waiting = asyncio.create_task(providers.anthropic.messages.create(**REQUESTS["/v1/messages"]))
    await until(lambda: providers.simulator.requests, why="the request is in")
    waiting.cancel()

    charge = await settled(providers)
    assert (charge.outcome, charge.usd) == ("aborted", 0)


@pytest.mark.parametrize("path", REQUESTS)
async def test_a_client_that_leaves_midway_pays_for_what_was_sent(providers, path):
    gate = asyncio.Event()
    fails(providers, Fault(hold=gate, hold_at="middle"))
    async with reading(providers, path) as response:
        await response.content.readany()

    charge = await settled(providers)
    assert (charge.outcome, charge.usage_delivered, charge.usage.input) == ("aborted", False, INPUT_TOKENS)
    assert 0 < charge.usage.output < OUTPUT_TOKENS


async def test_a_held_answer_goes_on_when_it_is_released(providers):
    gate = asyncio.Event()
    fails(providers, Fault(hold=gate, hold_at="middle"))
    texts = []
    async with providers.anthropic.messages.stream(**REQUESTS["/v1/messages"]) as events:
        async for text in events.text_stream:
            texts.append(text)
            gate.set()

    assert "".join(texts) == TEXT
    assert providers.charge.usage_delivered


async def test_closing_ends_what_hangs():
    async with Simulator(lambda asked: Say(fault=Fault(hold=asyncio.Event()))) as simulator:
        client = anthropic.AsyncAnthropic(base_url=simulator.url, api_key="k", max_retries=0)
        waiting = asyncio.create_task(client.messages.create(**REQUESTS["/v1/messages"]))
        await until(lambda: simulator.requests, why="the request is in")

    with pytest.raises(anthropic.APIConnectionError):
        await waiting
    await client.close()


async def test_seeded_faults_are_the_same_in_every_run():
    kinds = (Fault(error="overloaded"), Fault(error="rate_limited", retry_after_s=1))

    async def outcomes(seed: int) -> list[int]:
        async with Simulator(lambda asked: Say(text="fine"), faults=seeded(seed, 0.5, kinds)) as simulator:
            async with aiohttp.ClientSession(headers={"x-api-key": "k"}) as session:
                for n in range(40):
                    body, attempt = REQUESTS["/v1/messages"], {"X-Wayline-Attempt": f"job/{n}"}
                    async with session.post(f"{simulator.url}/v1/messages", json=body, headers=attempt):
                        pass
            return [charge.status for charge in simulator.bill.charges]

    one, again, other = await outcomes(1), await outcomes(1), await outcomes(2)

    assert one == again != other
    assert {200, 429, 529} == set(one)
