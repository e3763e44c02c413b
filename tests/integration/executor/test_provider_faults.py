"""Every fault of a provider, over a socket: tried again, handed to another model, or failed with a clear error."""

import asyncio
from decimal import Decimal

import pytest

from wayline.contracts import events as e
from wayline.contracts.jobs import Cancel
from wayline.simulator.chat_server import ChatServer, Say
from wayline.testkit import until

from .conftest import ExecutorPlatform

SPENT = {"message": "You exceeded your current quota", "type": "insufficient_quota", "code": "insufficient_quota"}
OVERLOADED = {"message": "Overloaded", "type": "overloaded_error"}
WORDS = "The moon pulls the sea"


def script(*says: Say):
    """One reply after another, whoever asks."""
    waiting = list(says)
    return lambda _: waiting.pop(0) if len(waiting) > 1 else waiting[0]


@pytest.mark.parametrize(
    ("fault", "code", "billable"),
    [
        (Say(status=429), "rate_limited", False),
        (Say(status=429, retry_after="1"), "rate_limited", False),
        (Say(status=500), "server_error", False),
        (Say(status=529), "overloaded", False),
        (Say(text=WORDS, cut=True), "stream_cut", True),
        (Say(text=WORDS, error=OVERLOADED), "overloaded", True),
    ],
    ids=["429", "429 with Retry-After", "500", "529", "a stream that is cut", "overloaded within a 200"],
)
async def test_a_fault_that_may_pass_is_tried_again(platform: ExecutorPlatform, fault: Say, code: str, billable: bool):
    async with ChatServer(script(fault, Say(text=WORDS))) as chat:
        await platform.executor(chat)
        await platform.begin("j1")

        done = await platform.wait_for("j1")

    assert (done.status, done.answer) == ("completed", WORDS)
    [failed] = await platform.events_of("j1", e.ModelFailed)
    assert (failed.error.code, failed.retryable) == (code, True)
    assert failed.after_s == (1 if fault.retry_after else None)
    assert [attempt for attempt, _ in chat.calls] == ["default/j1/1/m1", "default/j1/1/m2"]
    job = await platform.job("j1")
    if billable:
        assert failed.unsettled is not None and failed.unsettled.upper_usd is not None
        assert Decimal(0) < job.money.costs.unsettled_upper_usd == failed.unsettled.upper_usd
    else:
        assert failed.unsettled is None and job.money.costs.unsettled_upper_usd == 0


async def test_a_spend_cap_is_asked_once_and_says_what_to_do(platform: ExecutorPlatform):
    async with ChatServer(lambda _: Say(status=429, error=SPENT, retry_after="1")) as chat:
        await platform.executor(chat)
        await platform.begin("j1", fallbacks=("chat/two",))

        done = await platform.wait_for("j1")

    assert done.status == "failed" and done.error is not None
    assert done.error.code == "spend_cap" and "raise the spending limit" in done.error.message
    assert len(chat.calls) == 1, "neither it nor a model of the same provider is asked again"


async def test_a_spend_cap_hands_the_job_to_another_provider(platform: ExecutorPlatform):
    async with ChatServer(lambda _: Say(status=429, error=SPENT)) as chat:
        await platform.executor(chat)
        await platform.begin("j1", fallbacks=("chat/two", "offline/offline"))

        done = await platform.wait_for("j1")

    assert done.status == "completed" and done.route is not None
    assert done.route.name == "offline/offline" and "spend cap" in done.route.reason
    assert len(chat.calls) == 1
    asked = await platform.events_of("j1", e.ModelRequested)
    assert [(call.model, call.attempt_id) for call in asked] == [
        ("one", "default/j1/1/m1"),
        ("offline", "default/j1/1/m2"),
    ]


async def test_a_request_every_fallback_refuses_fails(platform: ExecutorPlatform):
    async with ChatServer(lambda _: Say(status=400)) as chat:
        await platform.executor(chat)
        await platform.begin("j1", fallbacks=("chat/two", "chat/three"))

        done = await platform.wait_for("j1")

    assert done.error is not None and done.error.code == "invalid_request"
    assert [body["model"] for _, body in chat.calls] == ["one", "two", "three"]


async def test_a_cancel_during_a_stream_bills_what_came(platform: ExecutorPlatform):
    text = "The moon pulls the sea towards it and the sea follows " * 20
    async with ChatServer(lambda _: Say(text=text, pace_s=0.02)) as chat:
        await platform.executor(chat)
        await platform.begin("j1", max_output_tokens=1_000)
        await platform.until_writing("j1")
        await platform.signal("j1", Cancel())

        done = await platform.wait_for("j1")
        await until(lambda: chat.aborted == 1, why="the provider's stream was cut")

    assert done.status == "cancelled"
    [failed] = await platform.events_of("j1", e.ModelFailed)
    assert failed.error.code == "cancelled" and failed.retracted_chars > 0
    assert failed.unsettled is not None and failed.unsettled.lower_usd is not None
    assert 0 < failed.unsettled.lower_usd < failed.unsettled.upper_usd


async def test_a_provider_that_hangs_is_left_when_the_job_is_cancelled(platform: ExecutorPlatform):
    async with ChatServer(lambda _: Say(delay_s=600)) as chat:
        await platform.executor(chat)
        await platform.begin("j1")
        await until(lambda: bool(chat.calls), why="the model was asked")
        await platform.signal("j1", Cancel())

        assert (await platform.wait_for("j1")).status == "cancelled"

    [failed] = await platform.events_of("j1", e.ModelFailed)
    asked = next(event for event in await platform.events("j1") if isinstance(event, e.ModelRequested))
    assert failed.unsettled == e.Bounds(lower_usd=Decimal(0), upper_usd=asked.worst_usd)


async def test_a_model_that_waits_for_its_retry_hears_a_cancel(platform: ExecutorPlatform):
    async with ChatServer(lambda _: Say(status=429, retry_after="50")) as chat:
        await platform.executor(chat)
        await platform.begin("j1", max_seconds=600)
        await until(lambda: bool(chat.calls), why="the model was asked")
        await platform.signal("j1", Cancel())

        assert (await platform.wait_for("j1")).status == "cancelled"

    assert len(chat.calls) == 1


async def test_two_executors_share_what_a_provider_asked_for(platform: ExecutorPlatform):
    """The first job is told to come back in 30 s; the second, on another executor, does not even ask."""

    def busy(body) -> Say:
        return Say(status=429, retry_after="30") if body["model"] == "one" else Say(text=WORDS)

    async with ChatServer(busy) as chat:
        first = await platform.executor(chat)
        await platform.begin("j1", fallbacks=("chat/two",))
        assert (await platform.wait_for("j1")).answer == WORDS
        await first.stop(0.1)
        await platform.executor(chat)

        await platform.begin("j2", fallbacks=("chat/two",))
        done = await platform.wait_for("j2")

    assert done.answer == WORDS and done.route is not None
    assert "asked to be left alone" in done.route.reason
    assert [(attempt, body["model"]) for attempt, body in chat.calls] == [
        ("default/j1/1/m1", "one"),
        ("default/j1/1/m2", "two"),
        ("default/j2/1/m1", "two"),
    ]


async def test_a_model_that_keeps_failing_is_left_alone_by_every_job(platform: ExecutorPlatform):
    def broken(body) -> Say:
        return Say(status=500) if body["model"] == "one" else Say(text=WORDS)

    async with ChatServer(broken) as chat:
        await platform.executor(chat)
        chained = {"fallbacks": ("chat/two",)}
        await asyncio.gather(*(platform.begin(f"j{n}", **chained) for n in range(5)))
        await asyncio.gather(*(platform.wait_for(f"j{n}") for n in range(5)))
        asked = sum(body["model"] == "one" for _, body in chat.calls)

        await platform.begin("late", **chained)
        done = await platform.wait_for("late")

    assert done.route is not None and "keeps failing" in done.route.reason
    assert sum(body["model"] == "one" for _, body in chat.calls) == asked
    assert asked < 5 * 4, "without a breaker each job would have tried four times"


async def test_a_key_that_its_provider_quotes_is_in_no_record(platform: ExecutorPlatform):
    key = "sk-very-secret-0123456789"
    error = {"message": f"Incorrect API key provided: {key}. " + "x" * 421 + key, "code": "invalid_api_key"}
    async with ChatServer(lambda _: Say(status=401, error=error)) as chat:
        await platform.executor(chat, key=key)
        await platform.begin("j1")

        done = await platform.wait_for("j1")

    assert done.error is not None and done.error.code == "authentication"
    assert "Incorrect API key provided: (a key)." in done.error.message
    assert not any("sk-very-" in event.model_dump_json() for event in await platform.events("j1"))
