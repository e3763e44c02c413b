"""A job ends at its limits with what it has, or says which limit it was."""

import asyncio

from wayline.simulator.chat_server import ChatServer, Say

from .conftest import chatting


def ask_the_time(_) -> Say:
    return Say(text="still looking", tools=(("get_current_time", {}),))


async def test_at_its_step_limit_a_job_answers_with_what_it_has(platform):
    async with ChatServer(ask_the_time) as chat:
        await platform.start("router", "executor", "tool_registry", executor=chatting(chat))

        await platform.submit("j1", model="chat/m", max_steps=2)

        ended = await platform.wait_for("j1")
        assert (ended.status, ended.partial, ended.answer, ended.steps) == ("completed", True, "still looking", 2)
        assert ended.reason == "the job's 2 steps are used up"
        assert len(chat.calls) == 2


async def test_a_loop_of_identical_calls_ends_with_a_partial_answer(platform):
    search = Say(text="searching", tools=(("search_knowledge", {"query": "the answer"}),))
    async with ChatServer(lambda _: search) as chat:
        await platform.start("router", "executor", "tool_registry", "retrieval", executor=chatting(chat))

        await platform.submit("j1", model="chat/m", max_steps=9)

        ended = await platform.wait_for("j1")
        assert (ended.status, ended.partial, ended.answer, ended.steps) == ("completed", True, "searching", 5)
        assert ended.reason is not None and "loop: it called search_knowledge 4 times" in ended.reason
        results = [event for event in await platform.events("j1") if event.type == "tool.completed"]
        assert [event.repeat_of for event in results] == [None, None, "1/1", "1/1"]
        assert results[2].content.startswith(results[0].content) and "was not run again" in results[2].content


async def test_an_answer_before_its_required_tools_is_sent_back(platform):
    script = iter([Say(text="no need"), Say(tools=(("get_current_time", {}),)), Say(text="it is late")])
    async with ChatServer(lambda _: next(script)) as chat:
        await platform.start("router", "executor", "tool_registry", executor=chatting(chat))

        await platform.submit("j1", model="chat/m", required_tools=["get_current_time"])

        ended = await platform.wait_for("j1")
        assert (ended.status, ended.answer, ended.reason) == ("completed", "it is late", None)
        notes = [event.note for event in await platform.events("j1") if event.type == "context.injected"]
        told = [note.text for note in notes if note.label == "CORRECTION"]
        assert len(told) == 1 and "get_current_time" in told[0]


async def test_what_a_model_wrote_until_the_deadline_is_a_partial_answer(platform):
    async with ChatServer(lambda _: Say(text="one two", hold=asyncio.Event())) as chat:
        await platform.start("router", "executor", "tool_registry", executor=chatting(chat))

        await platform.submit("j1", model="chat/m", max_seconds=3)

        ended = await platform.wait_for("j1")
        assert (ended.status, ended.partial, ended.answer.strip()) == ("completed", True, "one")
        assert ended.reason == "the job's 3 s are over"
        [completed] = [event for event in await platform.events("j1") if event.type == "model.completed"]
        assert completed.cost_usd is None and completed.unsettled is not None, "nobody knows what it cost"


async def test_a_failing_provider_is_retried_with_a_new_attempt_id(platform):
    script = iter([Say(status=500), Say(text="half", cut=True), Say(text="well then")])
    async with ChatServer(lambda _: next(script)) as chat:
        await platform.start("router", "executor", "tool_registry", executor=chatting(chat))

        await platform.submit("j1", model="chat/m")

        assert (await platform.wait_for("j1", within=30)).answer == "well then"
        assert [attempt for attempt, _ in chat.calls] == [f"default/j1/1/m{n}" for n in (1, 2, 3)]
        failed = [event for event in await platform.events("j1") if event.type == "model.failed"]
        assert [(event.error.code, event.retryable) for event in failed] == [
            ("server_error", True),
            ("stream_cut", True),
        ]


async def test_a_refusal_by_the_provider_is_not_tried_again(platform):
    async with ChatServer(lambda _: Say(status=400)) as chat:
        await platform.start("router", "executor", "tool_registry", executor=chatting(chat))

        await platform.submit("j1", model="chat/m")

        ended = await platform.wait_for("j1")
        assert (ended.status, ended.error.code, len(chat.calls)) == ("failed", "invalid_request", 1)


async def test_a_job_that_requires_a_missing_tool_says_which(platform):
    await platform.start("router", "executor", "tool_registry")

    await platform.submit("j1", required_tools=["get_current_time", "teleport"])

    ended = await platform.wait_for("j1")
    assert (ended.status, ended.error.code) == ("failed", "missing_tools")
    assert "teleport" in ended.error.message and "get_current_time" not in ended.error.message


async def test_an_unconfigured_provider_is_refused_with_the_configured_ones(platform):
    await platform.start("router", "executor", "tool_registry")

    await platform.submit("j1", model="acme/large")

    ended = await platform.wait_for("j1")
    assert (ended.status, ended.error.code) == ("failed", "unknown_provider")
    assert "offline" in ended.error.message
