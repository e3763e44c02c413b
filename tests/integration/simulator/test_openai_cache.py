"""OpenAI's cache rules, seen from the usage that the SDK reads and from the bill."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from wayline.simulator import BLOCK_TOKENS, TOKEN_BYTES, Say

MARK = {"prompt_cache_breakpoint": {"mode": "explicit"}}
EXPLICIT = {"prompt_cache_options": {"mode": "explicit"}}


def text(tokens: int, letter: str = "a", **more) -> dict[str, Any]:
    return {"type": "input_text", "text": letter * (tokens - BLOCK_TOKENS) * TOKEN_BYTES, **more}


class Talk:
    """Sends prompts and tells what was read, what was written, and all of it."""

    def __init__(self, providers) -> None:
        self.client = providers.openai
        providers.simulator.script = lambda asked: Say(text="fine")

    async def __call__(self, *content, model="gpt-6-sol", **more) -> tuple[int, int, int]:
        items: Any = [{"role": "user", "content": list(content)}]
        answer = await self.client.responses.create(model=model, input=items, **more)
        read = answer.usage.input_tokens_details
        return read.cached_tokens, read.cache_write_tokens, answer.usage.input_tokens


@pytest.fixture
def talk(providers):
    return Talk(providers)


async def test_prompts_are_cached_automatically_in_steps_of_128_tokens(providers, talk):
    assert await talk(text(1_200)) == (0, 1_152, 1_200)
    assert await talk(text(1_200)) == (1_152, 0, 1_200)
    assert await talk(text(1_200), text(100, "b")) == (1_152, 128, 1_300)

    # 1,152 written at $2.50, then read at $0.20; the rest at $2; 4 tokens of answer at $10 a million.
    written, read, _ = providers.simulator.bill.charges
    assert written.usd == Decimal("0.003016000")
    assert read.usd == Decimal("0.000366400")


async def test_a_shared_beginning_is_read_up_to_its_last_whole_step(talk):
    await talk(text(2_000))

    assert (await talk(text(1_500)))[0] == 1_408
    assert (await talk(text(1_500), text(600, "b")))[0] == 1_408


async def test_a_prompt_below_1024_tokens_is_not_kept(talk):
    for _ in range(2):
        assert await talk(text(1_023)) == (0, 0, 1_023)

    assert await talk(text(1_024)) == (0, 1_024, 1_024)
    assert await talk(text(1_024)) == (1_024, 0, 1_024)


async def test_tools_and_instructions_stand_before_the_input(talk):
    parameters = {"type": "object", "properties": {}}
    tool = {"type": "function", "name": "search", "description": "x" * 6_000, "parameters": parameters, "strict": False}
    await talk(text(600), tools=[tool], instructions="i" * 4_000)

    assert (await talk(text(600, "b"), tools=[tool], instructions="i" * 4_000))[0] > 2_400
    assert (await talk(text(600), tools=[tool], instructions="j" * 4_000))[0] == 1_408
    assert (await talk(text(600), tools=[{**tool, "name": "find"}], instructions="i" * 4_000))[0] == 0


async def test_a_cache_key_names_a_machine_and_machines_share_nothing(talk):
    await talk(text(1_200), prompt_cache_key="one")

    assert (await talk(text(1_200), prompt_cache_key="two"))[0] == 0
    assert (await talk(text(1_200), prompt_cache_key="one"))[0] == 1_152
    assert (await talk(text(1_200), prompt_cache_key="one", model="gpt-6-luna"))[0] == 0


async def test_a_cached_prompt_ends_after_an_unread_half_hour(providers, talk):
    await talk(text(1_200))
    for _ in range(2):
        providers.clock.advance(1_799)
        assert (await talk(text(1_200)))[0] == 1_152
    providers.clock.advance(1_801)
    assert (await talk(text(1_200)))[0] == 0


async def test_an_explicit_breakpoint_is_exact_and_has_no_lookback_limit(talk):
    first = text(1_111, **MARK)
    assert await talk(first, text(500, "b"), **EXPLICIT) == (0, 1_111, 1_611)

    blocks = [text(10, "c") for _ in range(60)]
    assert await talk(first, *blocks, **EXPLICIT) == (1_111, 0, 1_711)


async def test_explicit_mode_without_breakpoints_uses_no_cache(talk):
    for _ in range(2):
        assert await talk(text(2_000), **EXPLICIT) == (0, 0, 2_000)


async def test_only_the_latest_breakpoints_are_written(talk):
    marked = [text(1_100, letter, **MARK) for letter in "abcde"]
    assert await talk(*marked, **EXPLICIT) == (0, 5_500, 5_500)

    assert (await talk(marked[0], text(50, "x"), **EXPLICIT))[0] == 0, "the fifth from the end was not kept"
    assert (await talk(*marked[:2], text(50, "x"), **EXPLICIT))[0] == 2_200


async def test_chat_completions_tell_the_same(providers, talk):
    messages: Any = [{"role": "user", "content": "a" * 4 * 1_197}]
    for expected in ((0, 1_152), (1_152, 0)):
        answer = await providers.openai.chat.completions.create(model="gpt-6-luna", messages=messages)
        read = answer.usage.prompt_tokens_details
        assert (read.cached_tokens, read.cache_write_tokens, answer.usage.prompt_tokens) == (*expected, 1_200)


async def test_above_its_threshold_a_request_costs_the_dearer_prices_throughout(providers, talk):
    await talk(text(272_001), **EXPLICIT)

    assert providers.charge.usd == Decimal("1.088064000")  # 272,001 at $4 and 4 at $15


async def test_reading_an_old_breakpoint_keeps_it_on(providers, talk):
    first = text(1_100, **MARK)
    later = [text(1_100, letter, **MARK) for letter in "bcde"]
    await talk(first, **EXPLICIT)
    providers.clock.advance(1_700)
    # Four newer breakpoints are written; the first is only read.
    assert await talk(first, *later, **EXPLICIT) == (1_100, 4_400, 5_500)
    providers.clock.advance(1_700)

    assert (await talk(first, text(50, "x"), **EXPLICIT))[0] == 1_100
