"""The same scripts pass unchanged on every wire format, streamed or not, through the providers' own SDKs."""

from __future__ import annotations

import asyncio

import pytest

from .jobs import JOBS, through_chat, through_messages, through_responses


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("job", JOBS)
async def test_a_script_plays_the_same_job_on_the_three_wire_formats(providers, job, stream):
    script, schema = JOBS[job]
    providers.simulator.script = script

    one = await through_messages(providers.anthropic, schema, stream=stream)
    two = await through_responses(providers.openai, schema, stream=stream)
    three = await through_chat(providers.openai, schema, stream=stream)

    for done in (one, two, three):
        assert (done.answer, done.calls, done.thinking) == (one.answer, one.calls, one.thinking)
        assert done.output_tokens == one.output_tokens
        assert bool(done.thinking) == ("thinking" in job)
    # Thinking is read again where it is handed back; nothing else differs.
    assert one.input_tokens == two.input_tokens
    assert (three.input_tokens == one.input_tokens) == (not one.thinking)
    assert sum(charge.usage.output for charge in providers.simulator.bill.charges) == 3 * one.output_tokens


async def test_jobs_at_the_same_time_do_not_mix(providers):
    providers.simulator.script, schema = JOBS["two calls at once, with thinking"]

    done = await asyncio.gather(*(through_messages(providers.anthropic, schema, stream=True) for _ in range(8)))

    assert len(set(done)) == 1
    assert [charge.number for charge in providers.simulator.bill.charges] == list(range(1, 25))
