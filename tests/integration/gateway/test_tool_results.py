"""Results of a caller's own tools over HTTP: each call has one, whoever gives it and however often."""

from __future__ import annotations

import asyncio

from wayline.chassis import Bus
from wayline.contracts.events import ToolCompleted
from wayline.contracts.jobs import Signal, ToolResults

from .conftest import Running
from .story import Story

PATH = "/v1/jobs/j1/tool_results"
LONG = "a line of a long result\n" * 4_000


async def asking(bus: Bus) -> tuple[Story, str]:
    """A job that waits for the weather, and the key of its call."""
    told = Story(bus, "default", "j1")
    await told.begin()
    await told.claim()
    return told, await told.give_out("weather", city="Bonn")


async def stored(bus: Bus) -> list[str]:
    state = (await bus.js.stream_info("SIGNALS")).state
    raw = [await bus.js.get_msg("SIGNALS", n) for n in range(max(1, state.first_seq), state.last_seq + 1)]
    signals = [Signal.from_wire(await bus.body(message), message.subject or "") for message in raw]
    return [one.content for told in signals if isinstance(told.signal, ToolResults) for one in told.signal.results]


def body(key: str, content: str = "rain", **more: object) -> dict[str, object]:
    return {"results": [{"key": key, "content": content, **more}]}


async def test_a_result_is_stored_once_and_another_one_is_a_conflict(gateway: Running, bus: Bus):
    _, key = await asking(bus)

    bodies = (body(key, LONG), body(key, LONG), body(key, "sun"), body(key, LONG, failed=True))
    answers = [await gateway.client.post(PATH, json=one) for one in bodies]

    assert [one.status_code for one in answers] == [202, 202, 409, 409]
    assert answers[0].json()["signal"] == "tool_results"
    assert answers[2].json()["code"] == "result_conflict"
    assert await stored(bus) == [LONG]


async def test_of_results_given_at_once_one_counts(gateway: Running, bus: Bus):
    _, key = await asking(bus)

    answers = await asyncio.gather(*(gateway.client.post(PATH, json=body(key, f"{n}")) for n in range(8)))

    assert sorted(one.status_code for one in answers) == [202] + [409] * 7
    accepted = next(n for n, one in enumerate(answers) if one.status_code == 202)
    assert (await stored(bus))[0] == f"{accepted}"


async def test_a_call_that_the_job_has_not_made_is_unknown(gateway: Running, bus: Bus):
    await asking(bus)

    other = await gateway.client.post(PATH, json=body("default/j1/1/2"))
    nobody = await gateway.client.post("/v1/jobs/nobody/tool_results", json=body("default/nobody/1/1"))
    empty = await gateway.client.post(PATH, json={"results": []})

    assert [one.status_code for one in (other, nobody, empty)] == [404, 404, 422]
    assert await stored(bus) == []


async def test_a_recorded_result_is_known_after_the_jobs_end(gateway: Running, bus: Bus):
    told, key = await asking(bus)
    given = (await gateway.client.post(PATH, json=body(key))).status_code
    result = ToolResults.model_validate(body(key)).results[0]
    assert told.head is not None
    place = told._place(told.head.seq + 1)
    done = ToolCompleted(**place, step=1, call="1", tool="weather", status="success", given=result.digest)
    told.head = await told.log.append([done], told.head, signals_seen=1)
    await told.end()

    again = await gateway.client.post(PATH, json=body(key))
    other = await gateway.client.post(PATH, json=body(key, "sun"))

    assert (given, again.status_code, other.status_code) == (202, 202, 409)


async def test_the_parked_job_shows_the_calls_that_it_waits_for(gateway: Running, bus: Bus):
    _, key = await asking(bus)

    waiting = (await gateway.client.get("/v1/jobs/j1")).json()["waiting_for"]

    assert (waiting["why"], waiting["tool_calls"][0]["key"]) == ("tool_results", key)
    assert waiting["tool_calls"][0]["arguments"] == {"city": "Bonn"}
