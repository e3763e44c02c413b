"""A job that waits costs nothing, and goes on from where it stood."""

import pytest

from wayline.executor.settings import Settings as ExecutorSettings
from wayline.simulator.chat_server import ChatServer, Say, turns
from wayline.testkit import until

from .conftest import chatting, with_tools

KEY = "default/j1/1/1"
PAY_THEN_ANSWER = turns(Say(tools=(("effects__pay_once", {}),)), Say(text="all done"))


async def parked(platform, effects, chat, settings: ExecutorSettings | None = None):
    """A job that waits for a decision: its `once` tool's server died with the call in hand."""
    effects.delay_ms = 60_000
    await effects.start()
    await platform.start(
        "router",
        "executor",
        "tool_registry",
        executor=settings or chatting(chat),
        tool_registry=with_tools(effects.settings()),
    )
    await platform.submit("j1", model="chat/m")
    # In the ledger is not enough: of a call that never reached its server it is known that it did nothing.
    await until(lambda: effects.has_begun("pay_once", KEY), why="the call reached the server")
    effects.kill()
    await until(lambda: has_parked(platform), why="the job has parked")
    return await platform.job("j1")


async def has_parked(platform) -> bool:
    """Whether it ever did: where its wait is short, it may have gone on since."""
    return any(event.type == "job.parked" for event in await platform.events("j1"))


@pytest.mark.parametrize(
    ("outcome", "shown"),
    [("succeeded", "it was paid"), ("failed", "it was not paid")],
)
async def test_a_persons_answer_becomes_the_tools_result(platform, effects, outcome, shown):
    async with ChatServer(PAY_THEN_ANSWER) as chat:
        job = await parked(platform, effects, chat)
        assert (job.life.waiting.why, job.life.waiting.tool) == ("needs_decision", "effects__pay_once")
        await platform.wait_until_empty("RUN")

        await platform.signal("j1", type="answer", decision_id=job.life.waiting.wait_id, outcome=outcome, content=shown)

        assert (await platform.wait_for("j1")).answer == "all done"
        types = [event.type for event in await platform.events("j1")]
        assert types[-7:-2] == ["job.claimed", "job.resumed", "decision.made", "tool.completed", "model.requested"]
        assert chat.calls[-1][1]["messages"][-1]["content"] == shown
        assert effects.calls() == []
        await platform.wait_until_empty("RUN")


async def test_do_it_again_is_a_new_key(platform, effects):
    async with ChatServer(PAY_THEN_ANSWER) as chat:
        job = await parked(platform, effects, chat)
        effects.delay_ms = 0
        await effects.start()

        await platform.signal("j1", type="answer", decision_id=job.life.waiting.wait_id, outcome="retry")

        assert (await platform.wait_for("j1")).status == "completed"
        assert effects.calls() == [("pay_once", "default/j1/1/1/2")]


async def test_a_wait_that_is_over_is_a_visible_denial(platform, effects):
    async with ChatServer(PAY_THEN_ANSWER) as chat:
        settings = ExecutorSettings(chat_base_url=chat.url, tool_wait_s=2.0, decision_ttl_s=1.0)

        await parked(platform, effects, chat, settings)

        assert (await platform.wait_for("j1")).status == "completed"
        events = await platform.events("j1")
        [decision] = [event for event in events if event.type == "decision.made"]
        [completed] = [event for event in events if event.type == "tool.completed"]
        assert (decision.outcome, completed.status) == ("expired", "failed")
        assert effects.calls() == []


async def test_an_answer_that_fits_no_question_leaves_the_job_parked(platform, effects):
    async with ChatServer(PAY_THEN_ANSWER) as chat:
        await parked(platform, effects, chat)
        claims = len([event for event in await platform.events("j1") if event.type == "job.claimed"])

        await platform.signal("j1", type="answer", decision_id="another", outcome="succeeded")

        def parked_again(job) -> bool:
            return job.life.status == "parked" and job.life.epoch > claims

        await platform.wait_until("j1", parked_again, "it woke up, found nothing and parked again")
        await platform.wait_until_empty("RUN")


async def test_a_parked_job_outlives_its_executor_and_can_be_cancelled(platform, effects):
    async with ChatServer(PAY_THEN_ANSWER) as chat:
        await parked(platform, effects, chat)
        await platform.stop("executor")

        await platform.signal("j1", type="cancel", reason="no longer needed")
        await platform.start("executor", executor=chatting(chat))

        assert (await platform.wait_for("j1")).status == "cancelled"
        await platform.wait_until_empty("RUN")


async def answered_while_the_registry_is_away(platform, effects, chat) -> None:
    """A parked job whose answer is in its log and not yet in the ledger: its holder waits for the registry."""
    job = await parked(platform, effects, chat)
    await platform.wait_until_empty("RUN")
    await platform.stop("tool_registry")
    await platform.signal(
        "j1", type="answer", decision_id=job.life.waiting.wait_id, outcome="succeeded", content="paid"
    )

    def decided(job) -> bool:
        return any(call.decision is not None for call in job.tools.calls)

    await platform.wait_until("j1", decided, "the answer is in the log")


async def test_a_cancel_is_heard_while_an_answer_waits_for_the_ledger(platform, effects):
    async with ChatServer(PAY_THEN_ANSWER) as chat:
        await answered_while_the_registry_is_away(platform, effects, chat)

        await platform.signal("j1", type="cancel", reason="no longer needed")

        assert (await platform.wait_for("j1")).status == "cancelled"
        types = [event.type for event in await platform.events("j1")]
        assert types[-4:] == ["decision.made", "job.cancel_requested", "tool.completed", "job.cancelled"]
        await platform.wait_until_empty("RUN")


async def test_a_stop_while_an_answer_awaits_the_ledger_hands_back(platform, effects):
    async with ChatServer(PAY_THEN_ANSWER) as chat:
        await answered_while_the_registry_is_away(platform, effects, chat)
        await platform.stop("executor", 5)

        await platform.start(
            "tool_registry", "executor", executor=chatting(chat), tool_registry=with_tools(effects.settings())
        )

        assert (await platform.wait_for("j1")).answer == "all done"
        types = [event.type for event in await platform.events("j1")]
        assert types[types.index("decision.made") :] == [
            "decision.made",
            "job.handed_back",
            "job.claimed",
            "tool.completed",
            "model.requested",
            "model.completed",
            "job.completed",
        ]
        assert chat.calls[-1][1]["messages"][-1]["content"] == "paid"
        assert effects.calls() == []
