"""A job enters by HTTP."""

from __future__ import annotations

import asyncio

from wayline.contracts.jobs import SubmitJob
from wayline.chassis import Bus

from .conftest import Running, World

JOB = {"agent": "assistant", "input": "What moves the sea?"}


async def queued(bus: Bus) -> list[SubmitJob]:
    """What lies in SUBMIT, oldest first."""
    state = (await bus.js.stream_info("SUBMIT")).state
    found = []
    for sequence in range(state.first_seq, state.last_seq + 1):
        raw = await bus.js.get_msg("SUBMIT", sequence)
        found.append(SubmitJob.from_wire(raw.data or b"", raw.subject or ""))
    return found


async def test_a_submitted_job_is_on_the_bus_and_queued_before_its_log_exists(gateway: Running, bus: Bus):
    answer = await gateway.client.post("/v1/jobs", json={**JOB, "session_id": "s1"})

    assert answer.status_code == 202
    accepted = answer.json()
    assert accepted["status"] == "queued"
    assert answer.headers["location"] == accepted["links"]["self"] == f"/v1/jobs/{accepted['job_id']}"
    (job,) = await queued(bus)
    assert (job.tenant, job.job_id, job.input, job.session_id) == ("default", accepted["job_id"], JOB["input"], "s1")
    seen = (await gateway.client.get(accepted["links"]["self"])).json()
    assert (seen["status"], seen["agent"], seen["session_id"]) == ("queued", "assistant", "s1")
