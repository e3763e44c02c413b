"""`kill -9` around a helper's query and its ranking for a search: each is paid for once, and the job goes on."""

from __future__ import annotations

import asyncio

import pytest
import pytest_asyncio

from wayline.chassis import Failpoint
from wayline.contracts import events as e
from wayline.contracts.agents import Agent, AgentConfig, PutAgent, Routing
from wayline.contracts.errors import WaylineError
from wayline.contracts.knowledge import Document, GetDocument, IndexDocument
from wayline.contracts.models import ModelCard, PutModel, Tier
from wayline.executor.decide.rerank import LOST
from wayline.executor.replay import replay
from wayline.simulator.chat_server import Say
from wayline.testkit import until

from .conftest import MakePlatform
from .kill_points import kill_points
from .platform import TENANT, FaultPlatform, Reply, says

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

ORDER = Say("[3]")
LATER = [Failpoint.EXECUTOR_INTENT_BEFORE, Failpoint.EXECUTOR_INTENT_AFTER, Failpoint.EXECUTOR_AUX_AFTER]
QUICK = {Failpoint.EXECUTOR_AUX_AFTER}
"""What `make test` runs of them."""


def searches(query: str) -> Reply:
    return {"tools": [["search_knowledge", {"query": query, "top_k": 1, "mode": "keyword"}]]}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def platform(make_platform: MakePlatform) -> FaultPlatform:
    platform = await make_platform("retrieval")
    await platform.fleet.ensure("router", "tool_registry", "retrieval")
    tiers: dict[str, Tier] = {"helper": "flash", "plain": "standard"}
    for model, tier in tiers.items():
        card = ModelCard(provider="chat", model=model, tier=tier)
        await platform.bus.ask(PutModel(tenant=TENANT, card=card), ModelCard)
    routing = Routing(fast="chat/helper", primary="chat/plain", escalation="chat/plain")
    options = {"librarian": {"rerank": True}, "follower": {"rewrite_queries": True}}
    for name, option in options.items():
        config = AgentConfig.model_validate({"routing": routing, **option})
        await platform.bus.ask(PutAgent(tenant=TENANT, name=name, config=config), Agent)
    for n in range(4):
        text = f"The tide of harbour {n} comes in. " + "It is high. " * n
        index = IndexDocument(tenant=TENANT, document_id=f"d{n}", name=f"d{n}.txt", text=text)
        await platform.bus.publish(index, msg_id=f"d{n}")

    async def indexed() -> bool:
        try:
            asked = [GetDocument(tenant=TENANT, document_id=f"d{n}") for n in range(4)]
            return all([(await platform.bus.ask(one, Document)).status == "ready" for one in asked])
        except WaylineError:
            return False

    await until(indexed, within=60, why="the documents are ready")
    return platform


async def finish(platform: FaultPlatform, name: str, helper: Say = ORDER) -> list[e.Event]:
    """Let another executor end the job, and return its log once everything that must be true was checked."""
    platform.helper = helper
    await platform.fleet.start("executor")
    await platform.until_ended(name)
    await platform.until_quiet()
    await platform.fleet.stop("executor")
    await platform.check(name)
    assert (await platform.job(name)).life.status == "completed"
    events = await platform.events(name)
    assert replay(events).divergence is None
    return events


def asked(platform: FaultPlatform, name: str) -> list[str]:
    return [attempt for attempt, _ in platform.chat.calls if attempt.startswith(f"{TENANT}/{name}/1/a")]


def shown(platform: FaultPlatform, name: str) -> list[str]:
    """The search's result as each prompt of the second step holds it."""
    prompts = [body for attempt, body in platform.chat.calls if f"/{name}/2/m" in attempt]
    return [next(m["content"] for m in body["messages"] if m["role"] == "tool") for body in prompts]


def ranked(events: list[e.Event]) -> e.PassagesReranked:
    [event] = [event for event in events if isinstance(event, e.PassagesReranked)]
    return event


def found(events: list[e.Event]) -> e.ToolCompleted:
    return next(event for event in events if isinstance(event, e.ToolCompleted))


@pytest.mark.parametrize("point", kill_points(((point,) for point in LATER), QUICK))
async def test_a_killed_ranking_is_asked_for_at_most_once(platform: FaultPlatform, point: Failpoint):
    name = f"kill-{point}".replace(".", "-")
    platform.helper = ORDER
    # The search's own intent is late: the first one that is appended before a call is that of the ranking.
    doomed = await platform.fleet.start("executor", point)
    await platform.submit_plan(name, searches("tide"), says("done"), agent="librarian", model=None)
    await platform.until_dead(doomed, name)

    events = await finish(platform, name)

    assert len(asked(platform, name)) <= 1
    event = ranked(events)
    assert [one.reason for one in (event,) if not event.reranked] in ([], [LOST])
    assert event.reranked or shown(platform, name) == [found(events).content]
    if point is Failpoint.EXECUTOR_AUX_AFTER:
        [failed] = [event for event in events if isinstance(event, e.AuxiliaryFailed)]
        assert (failed.purpose, failed.about, failed.error.code) == ("rerank", "1/1", e.LOST)
        assert failed.unsettled is not None
        assert not event.reranked and len(asked(platform, name)) == 1


@pytest.mark.slow
async def test_a_kill_while_the_helper_ranks_leaves_the_searchs_order(platform: FaultPlatform):
    name, held = "ranking", asyncio.Event()
    platform.helper = Say(ORDER.text, hold=held)
    doomed = await platform.fleet.start("executor")
    await platform.submit_plan(name, searches("tide"), says("done"), agent="librarian", model=None)
    await until(lambda: bool(asked(platform, name)), within=60, why="the helper ranks")
    doomed.kill()

    events = await finish(platform, name)

    held.set()
    assert (ranked(events).reranked, ranked(events).reason, len(asked(platform, name))) == (False, LOST, 1)
    assert shown(platform, name) == [found(events).content]


@pytest.mark.slow
async def test_a_recorded_order_is_what_the_next_holder_shows(platform: FaultPlatform):
    name = "ordered"
    platform.helper = ORDER
    doomed = await platform.fleet.start("executor")
    plan = (searches("tide"), says("done", hold=name))
    await platform.submit_plan(name, *plan, agent="librarian", model=None)
    await until(lambda: name in platform.holds, within=60, why="the model answers from what was chosen")
    doomed.kill()
    platform.holds[name].set()

    events = await finish(platform, name)

    event, search = ranked(events), found(events)
    assert search.found is not None
    third = search.found.passages[2]
    assert (event.reranked, event.order, event.citations) == (True, (2,), (third.citation,))
    assert shown(platform, name) == [event.content] * 2
    assert event.content == f"[1] {third.citation.document}\n{third.text}" != search.content
    assert len(asked(platform, name)) == 1


QUERY = Say('{"query": "tide of harbour 2"}')
FOLLOW_UP = "and the second one?"


async def follow_up(platform: FaultPlatform, name: str, *then: Reply) -> None:
    plan = (searches(FOLLOW_UP), *(then or (says("done"),)))
    await platform.submit_plan(name, *plan, agent="follower", model=None, said="Which harbours have a tide?")


def rewritten(events: list[e.Event]) -> e.QueryRewritten:
    [event] = [event for event in events if isinstance(event, e.QueryRewritten)]
    return event


def searched(events: list[e.Event]) -> str:
    """What the search was made for, which is asked for once."""
    [query] = [event.arguments["query"] for event in events if isinstance(event, e.ToolRequested)]
    return query


@pytest.mark.parametrize("point", kill_points(((point,) for point in LATER), QUICK))
async def test_a_killed_rewriting_is_asked_for_at_most_once(platform: FaultPlatform, point: Failpoint):
    name = f"query-{point}".replace(".", "-")
    platform.helper = QUERY
    doomed = await platform.fleet.start("executor", point)
    await follow_up(platform, name)
    await platform.until_dead(doomed, name)

    events = await finish(platform, name, QUERY)

    assert len(asked(platform, name)) <= 1
    event = rewritten(events)
    assert (event.rewritten, event.reason) in ((True, None), (False, LOST))
    assert searched(events) == ("tide of harbour 2" if event.rewritten else FOLLOW_UP)
    if point is Failpoint.EXECUTOR_AUX_AFTER:
        [failed] = [event for event in events if isinstance(event, e.AuxiliaryFailed)]
        assert (failed.purpose, failed.about, failed.error.code) == ("rewrite", "1/1", e.LOST)
        assert failed.unsettled is not None
        assert not event.rewritten and len(asked(platform, name)) == 1


@pytest.mark.slow
async def test_a_kill_while_the_helper_writes_leaves_the_query(platform: FaultPlatform):
    name, held = "writing", asyncio.Event()
    platform.helper = Say(QUERY.text, hold=held)
    doomed = await platform.fleet.start("executor")
    await follow_up(platform, name)
    await until(lambda: bool(asked(platform, name)), within=60, why="the helper writes")
    doomed.kill()

    events = await finish(platform, name, QUERY)

    held.set()
    event = rewritten(events)
    assert (event.rewritten, event.reason, len(asked(platform, name))) == (False, LOST, 1)
    assert searched(events) == FOLLOW_UP
    assert LOST in found(events).content


@pytest.mark.slow
async def test_a_kill_before_the_search_never_asks_again(platform: FaultPlatform):
    name = "unsearched"
    platform.helper = QUERY
    doomed = await platform.fleet.start("executor", Failpoint.EXECUTOR_TOOL_BEFORE)
    await follow_up(platform, name)
    await platform.until_dead(doomed, name)

    events = await finish(platform, name, Say('{"query": "another"}'))

    # The query shares the record of its call's intent, which waits for the result of a call that only reads.
    event = rewritten(events)
    assert searched(events) == (event.query or FOLLOW_UP) != "another"
    assert len(asked(platform, name)) == 1
