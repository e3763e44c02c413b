"""A running job's page reads on from where it was; each key reads for itself, and the API decides each time."""

from __future__ import annotations

import time
from typing import Any, cast

import pytest

from wayline.client import ApiError
from wayline.client.client import Client
from wayline.console.pages import job_log
from wayline.console.pages.job_log import KEPT_S, LOGS_MAX, read_log


class Api:
    """The log of one job, as far as it is."""

    def __init__(self, *types: str) -> None:
        self.events = [{"seq": seq, "type": kind} for seq, kind in enumerate(types, 1)]
        self.asked: list[int] = []
        self.refusal: ApiError | None = None

    async def log(self, job_id: str, *, after: int = 0) -> list[dict[str, Any]]:
        self.asked.append(after)
        if self.refusal:
            raise self.refusal
        return self.events[after:]


async def read(api: Api, job_id: str = "j1") -> list[int]:
    return [event["seq"] for event in await read_log(cast(Client, api), job_id)]


async def test_a_running_log_is_read_on_and_an_ended_one_forgotten():
    api = Api("job.submitted", "job.routed")
    assert await read(api) == [1, 2]
    api.events.append({"seq": 3, "type": "model.requested"})
    assert await read(api) == [1, 2, 3]
    api.events.append({"seq": 4, "type": "job.completed"})
    assert await read(api) == [1, 2, 3, 4]
    await read(api)

    assert api.asked == [0, 2, 3, 0]


async def test_what_one_key_has_read_is_asked_for_anew_by_another():
    first, other = Api("job.submitted"), Api("job.submitted")
    await read(first)
    await read(other)

    assert other.asked == [0]


async def test_a_key_that_may_not_read_any_more_is_refused():
    api = Api("job.submitted")
    await read(api)
    api.refusal = ApiError("it is gone", code="not_found", status=404)
    with pytest.raises(ApiError):
        await read(api)
    api.refusal = None
    await read(api)

    assert api.asked == [0, 1, 0]


async def test_a_log_of_large_events_is_not_kept(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(job_log, "CHARS_MAX", 100)
    api = Api("job.submitted")
    await read(api)
    api.events.append({"seq": 2, "type": "tool.completed", "content": "x" * 100})
    await read(api)
    await read(api)

    assert api.asked == [0, 1, 0]


async def test_few_logs_are_kept_and_none_that_is_long(monkeypatch: pytest.MonkeyPatch):
    api = Api("job.submitted", "job.routed")
    for number in range(LOGS_MAX + 1):
        await read(api, f"j{number}")
    await read(api, "j0")
    assert api.asked[-1] == 0
    monkeypatch.setattr(job_log, "EVENTS_MAX", 1)
    await read(api, "long")
    await read(api, "long")

    assert api.asked[-1] == 0


async def test_a_log_is_read_whole_again_after_a_forget():
    api = Api("job.submitted", "job.routed")
    await read(api)
    job_log.forget_logs()
    await read(api)
    await read(api)
    later = time.monotonic() + KEPT_S + 1
    await read_log(cast(Client, api), "j1", clock=lambda: later)

    assert api.asked == [0, 0, 2, 0]
