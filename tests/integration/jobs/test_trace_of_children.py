"""A job and all that it starts are one trace: a child's spans hang under the call that started it."""

from __future__ import annotations

from collections.abc import Iterator

from wayline.contracts import ids
from wayline.contracts.errors import WaylineError
from wayline.contracts.traces import GetTrace, Span, Trace
from wayline.testkit import Platform, until

from .families import ChatServer, Family, Model, ask, calls, child, executor_settings, put_agents, says


def flat(span: Span) -> Iterator[Span]:
    yield span
    for below in span.children:
        yield from flat(below)


async def whole_trace(family: Family, job_id: str, *, agents: int) -> Trace:
    """Return a job's trace once so many agents are in it and none of their spans is open."""
    found: list[Trace] = []

    async def whole() -> bool:
        try:
            found[:] = [await family.platform.bus.ask(GetTrace(tenant="default", job_id=job_id), Trace)]
        except WaylineError:
            return False
        spans = list(flat(found[0].root))
        invoked = [span for span in spans if span.name.startswith("invoke_agent")]
        return len(invoked) == agents and all(span.status != "open" for span in spans)

    await until(whole, why=f"the trace of {job_id} is whole")
    return found[0]


async def test_the_spans_of_a_child_stand_under_its_parents_call(platform: Platform):
    model = Model()
    async with ChatServer(model.say) as chat:
        await platform.start("tracing", "router", "executor", executor=executor_settings(chat))
        await put_agents(platform)
        family = Family(platform, chat, model)
        inner = ask("boss", calls(ask("worker", says("42"))), says("forty-two"))
        await family.submit("j1", calls(inner), says("done"))
        await platform.wait_for("j1")

        trace = await whole_trace(family, "j1", agents=3)

        spans = {span.span_id: span for span in flat(trace.root)}
        below = spans[ids.job_span("default", child(child("j1")))]
        names = []
        while below.parent_span_id is not None:
            below = spans[below.parent_span_id]
            names.append(below.name)
        assert names == [
            "execute_tool run_agent",
            "step 1",
            "invoke_agent boss",
            "execute_tool run_agent",
            "step 1",
            "invoke_agent boss",
        ]
        assert trace.trace_id == ids.trace_id("default", "j1")
        of_all = [await platform.job(job_id) for job_id in ("j1", child("j1"), child(child("j1")))]
        assert trace.totals.tokens == sum(job.money.usage.total for job in of_all)

        part = await whole_trace(family, child("j1"), agents=2)

        assert (part.root.name, part.trace_id) == ("invoke_agent boss", trace.trace_id)
        assert part.root.span_id == ids.job_span("default", child("j1"))
        assert part.totals.tokens == sum(job.money.usage.total for job in of_all[1:])
