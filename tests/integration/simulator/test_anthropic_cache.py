"""Anthropic's cache rules, seen from the usage that the SDK reads and from the bill."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from decimal import Decimal

import pytest

from wayline.simulator import BLOCK_TOKENS, TOKEN_BYTES, Fault, Say, turns
from wayline.testkit import until
from wayline.testkit.media import png

from .sdks import anthropic

MARK = {"type": "ephemeral"}
HOUR = {"type": "ephemeral", "ttl": "1h"}
TOOL = {"name": "search", "description": "Finds.", "input_schema": {"type": "object", "properties": {}}}
PIXEL = {"type": "base64", "media_type": "image/png", "data": b64encode(png(1, 1)).decode()}


def text(tokens: int, letter: str = "a", **more) -> dict:
    """A text block that counts so many tokens."""
    return {"type": "text", "text": letter * (tokens - BLOCK_TOKENS) * TOKEN_BYTES, **more}


class Talk:
    """Sends prompts and tells what was read and written, and the rest."""

    def __init__(self, providers) -> None:
        self.client = providers.anthropic
        providers.simulator.script = lambda asked: Say(text="fine")

    async def __call__(self, *content, model="claude-sonnet-5-5", **more) -> tuple[int, int, int]:
        messages = more.pop("messages", [{"role": "user", "content": list(content)}])
        answer = await self.client.messages.create(model=model, max_tokens=2_000, messages=messages, **more)
        usage = answer.usage
        return usage.cache_read_input_tokens, usage.cache_creation_input_tokens, usage.input_tokens


@pytest.fixture
def talk(providers):
    return Talk(providers)


async def test_a_marked_prefix_is_written_once_then_read(providers, talk):
    system = [text(1_000, cache_control=MARK)]

    assert await talk(text(50), system=system) == (0, 1_000, 50)
    assert await talk(text(60, "b"), system=system) == (1_000, 0, 60)

    # 4 tokens of answer at $10, 50 and 60 at $2, 1,000 written at $2.50, then read at $0.10 a million.
    written, read = providers.simulator.bill.charges
    assert (written.usd, read.usd) == (Decimal("0.002640000"), Decimal("0.000260000"))
    assert providers.simulator.bill.usd == Decimal("0.0029")


async def test_one_hour_writes_cost_more_and_are_counted_apart(providers, talk):
    assert await talk(text(50), system=[text(1_000, cache_control=HOUR)]) == (0, 1_000, 50)
    mixed = [text(1_000, cache_control=HOUR), text(600, "b", cache_control=MARK)]
    assert await talk(text(50), system=mixed) == (1_000, 600, 50)
    both = [text(700, "c", cache_control=HOUR), text(600, "d", cache_control=MARK)]
    assert await talk(text(50), system=both) == (0, 1_300, 50)

    first, second, third = (charge.usage for charge in providers.simulator.bill.charges)
    assert (first.cache_write_1h, first.cache_write_5m) == (1_000, 0)
    assert (second.cache_write_1h, second.cache_write_5m) == (0, 600)
    assert (third.cache_write_1h, third.cache_write_5m) == (700, 600)
    assert providers.simulator.bill.charges[0].usd == Decimal("0.004140000")  # 1,000 at $4
    assert providers.simulator.bill.charges[2].usd == Decimal("0.004440000")  # 700 at $4, 600 at $2.50


@pytest.mark.parametrize(("model", "least"), [("claude-sonnet-5-5", 512), ("claude-haiku-4-5", 4_096)])
async def test_a_prefix_below_the_model_s_minimum_is_silently_not_kept(talk, model, least):
    for _ in range(2):
        assert await talk(text(9), model=model, system=[text(least - 1, cache_control=MARK)]) == (0, 0, least + 8)

    assert await talk(text(9), model=model, system=[text(least, cache_control=MARK)]) == (0, least, 9)
    assert await talk(text(9), model=model, system=[text(least, cache_control=MARK)]) == (least, 0, 9)


async def test_a_marker_may_move_on_without_breaking_the_prefix(talk):
    first, second, third = text(600), text(100, "b"), text(100, "c")

    assert await talk({**first, "cache_control": MARK}) == (0, 600, 0)
    assert await talk(first, {**second, "cache_control": MARK}) == (600, 100, 0)
    assert await talk(first, second, {**third, "cache_control": MARK}) == (700, 100, 0)


@pytest.mark.parametrize(("between", "read"), [(18, 600), (19, 0)])
async def test_a_mark_looks_at_twenty_positions_and_no_further(talk, between, read):
    first = text(600)
    await talk({**first, "cache_control": MARK})

    blocks = [text(10, "b") for _ in range(between)]
    found = await talk(first, *blocks, text(10, "c", cache_control=MARK))

    assert found == (read, 600 + 10 * (between + 1) - read, 0)


async def test_a_mark_on_the_way_bridges_a_long_step(talk):
    first, blocks = text(600), [text(10, "b") for _ in range(19)]
    await talk({**first, "cache_control": MARK})

    blocks[5] = {**blocks[5], "cache_control": MARK}

    assert await talk(first, *blocks, text(10, "c", cache_control=MARK)) == (600, 200, 0)


async def test_what_is_kept_ends_after_its_time_unless_it_is_read(providers, talk):
    system = [text(1_000, cache_control=MARK)]
    await talk(text(9), system=system)

    for _ in range(3):
        providers.clock.advance(299)
        assert await talk(text(9), system=system) == (1_000, 0, 9)
    providers.clock.advance(301)
    assert await talk(text(9), system=system) == (0, 1_000, 9)


async def test_a_one_hour_prefix_keeps_its_hour_under_a_shorter_mark(providers, talk):
    first = text(600)
    await talk({**first, "cache_control": HOUR})

    providers.clock.advance(3_000)
    assert await talk(first, text(100, "b", cache_control=MARK)) == (600, 100, 0)
    providers.clock.advance(3_000)
    assert await talk(first, text(100, "b", cache_control=MARK)) == (600, 100, 0)


async def test_tools_system_prompt_and_model_break_what_comes_after_them(talk):
    tool = {**TOOL, "description": "x" * 4_000, "cache_control": MARK}
    system = [text(600, cache_control=MARK)]
    asked = text(600, "b", cache_control=MARK)
    _, all_of_it, _ = await talk(asked, tools=[tool], system=system)
    tools_alone = all_of_it - 1_200

    assert await talk(asked, tools=[tool], system=system) == (all_of_it, 0, 0)
    changed = [text(600, "c", cache_control=MARK)]
    assert await talk(asked, tools=[tool], system=changed) == (tools_alone, 1_200, 0)
    assert (await talk(asked, tools=[{**tool, "name": "find"}], system=system))[0] == 0
    assert (await talk(asked, tools=[tool], system=system, model="claude-haiku-5-5"))[0] == 0


@pytest.mark.parametrize(
    "change",
    [
        {"tool_choice": {"type": "none"}},
        {"thinking": {"type": "adaptive"}},
        {"extra": {"type": "image", "source": PIXEL}},
    ],
)
async def test_tool_choice_thinking_and_images_break_the_messages_only(talk, change):
    system, asked = [text(600, cache_control=MARK)], text(600, "b", cache_control=MARK)
    tools = {**TOOL, "description": ""}
    prefix = 600 + 3 + -(-len('["search","",{"type":"object","properties":{}}]') // 4)
    await talk(asked, tools=[tools], system=system)
    change = dict(change)
    extra = [change.pop("extra")] if "extra" in change else []

    read, written, _ = await talk(asked, *extra, tools=[tools], system=system, **change)

    assert (read, written) == (prefix, 600)


async def test_the_order_of_an_object_s_keys_is_content(talk):
    def messages(arguments):
        call = {"type": "tool_use", "id": "t1", "name": "search", "input": arguments}
        result = {"type": "tool_result", "tool_use_id": "t1", "content": "x" * 4_000, "cache_control": MARK}
        return [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
        ]

    await talk(messages=messages({"a": 1, "b": 2}), tools=[TOOL])

    assert (await talk(messages=messages({"a": 1, "b": 2}), tools=[TOOL]))[0] > 1_000
    assert (await talk(messages=messages({"b": 2, "a": 1}), tools=[TOOL]))[0] == 0


async def test_four_marks_are_taken_and_five_refused(talk):
    marked = [text(600, letter, cache_control=MARK) for letter in "abcde"]

    assert await talk(*marked[:4]) == (0, 2_400, 0)
    with pytest.raises(anthropic.BadRequestError, match="maximum of 4 blocks with cache_control"):
        await talk(*marked)
    with pytest.raises(anthropic.BadRequestError, match="maximum of 4 blocks"):
        await talk(*marked[:4], text(9), cache_control=MARK)


async def test_an_hour_s_mark_may_not_follow_a_shorter_one(talk):
    with pytest.raises(anthropic.BadRequestError, match="must not come after"):
        await talk(text(600, cache_control=MARK), text(600, "b", cache_control=HOUR))


async def test_the_top_level_marker_marks_the_last_block(talk):
    first, second = text(600), text(100, "b")

    assert await talk(first, cache_control=MARK) == (0, 600, 0)
    assert await talk(first, second, cache_control=MARK) == (600, 100, 0)
    # On a block that bears its own mark it takes no second place.
    marked = [text(600, letter, cache_control=MARK) for letter in "abcd"]
    assert (await talk(*marked, cache_control=MARK))[0] == 600


async def test_a_prefix_can_be_read_only_once_its_answer_has_begun(providers):
    gate = asyncio.Event()
    held = Say(text="fine", fault=Fault(hold=gate))
    providers.simulator.script = lambda asked: held
    request = {
        "model": "claude-sonnet-5-5",
        "max_tokens": 99,
        "system": [text(1_000, cache_control=MARK)],
        "messages": [{"role": "user", "content": "hi"}],
    }
    at_once = [asyncio.create_task(providers.anthropic.messages.create(**request)) for _ in range(2)]
    await until(lambda: len(providers.simulator.requests) == 2, why="both requests are in")
    gate.set()

    assert [(await answer).usage.cache_read_input_tokens for answer in at_once] == [0, 0]
    assert (await providers.anthropic.messages.create(**request)).usage.cache_read_input_tokens == 1_000


async def test_what_is_refused_writes_nothing(providers, talk):
    system = [text(1_000, cache_control=MARK)]
    providers.simulator.script = lambda asked: Say(fault=Fault(error="overloaded"))
    with pytest.raises(anthropic.APIStatusError):
        await talk(text(9), system=system)

    providers.simulator.script = lambda asked: Say(text="fine")
    assert await talk(text(9), system=system) == (0, 1_000, 9)


async def test_keys_share_nothing(providers, talk):
    system = [text(1_000, cache_control=MARK)]
    await talk(text(9), system=system)
    async with anthropic.DefaultAioHttpClient() as http:
        talk.client = anthropic.AsyncAnthropic(base_url=providers.simulator.url, api_key="another", http_client=http)
        assert await talk(text(9), system=system) == (0, 1_000, 9)


async def test_a_deferred_tool_joins_the_prefix_once_found(providers, talk):
    providers.simulator.script = turns(Say(tools=(("search", {}),)), Say(text="fine"))
    system = [text(600, cache_control=MARK)]
    hidden = {**TOOL, "name": "refund", "defer_loading": True}
    later = {**TOOL, "name": "invoice", "defer_loading": True}
    answer = await providers.anthropic.messages.create(
        model="claude-sonnet-5-5",
        max_tokens=99,
        system=system,
        tools=[TOOL, hidden],
        messages=[{"role": "user", "content": "hi"}],
    )
    found = [{"type": "tool_reference", "tool_name": "refund"}]
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [block.to_dict() for block in answer.content]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": answer.content[0].id, "content": found}]},
    ]

    read, _, rest = await talk(messages=messages, system=system, tools=[TOOL, hidden, later])

    assert read > 600
    assert rest > 20, "the definition counts where it was found"
    offered = [[tool.name for tool in asked.tools] for asked in providers.simulator.requests]
    assert offered == [["search"], ["search", "refund"]]


async def test_max_tokens_zero_fills_the_cache_and_says_nothing(providers):
    request = {
        "model": "claude-sonnet-5-5",
        "system": [text(1_000, cache_control=MARK)],
        "messages": [{"role": "user", "content": "hi"}],
    }
    answer = await providers.anthropic.messages.create(**request, max_tokens=0)

    assert (answer.content, answer.stop_reason, answer.usage.output_tokens) == ([], "max_tokens", 0)
    again = await providers.anthropic.messages.create(**request, max_tokens=9)
    assert again.usage.cache_read_input_tokens == 1_000


async def test_above_its_threshold_a_request_costs_the_dearer_prices_throughout(providers, talk):
    await talk(text(100_000), model="claude-haiku-5-5")
    await talk(text(100_001), model="claude-haiku-5-5")

    below, above = providers.simulator.bill.charges
    assert below.usd == Decimal("0.010002000")  # 100,000 at $0.10 and 4 at $0.50
    assert above.usd == Decimal("0.050010500")  # 100,001 at $0.50 and 4 at $2.50
