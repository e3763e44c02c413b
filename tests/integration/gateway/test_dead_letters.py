"""Dead letters over HTTP: each tenant's own, however many there are of others."""

from __future__ import annotations

import pytest

from wayline.chassis import Bus
from wayline.contracts.jobs import SubmitJob
from wayline.contracts.traces import ListJobs
from wayline.gateway.adapters import dead_letters
from wayline.gateway.adapters.keys import create_key
from wayline.testkit import Platform

from .conftest import Running
from .others import Others
from .story import Story


async def put_aside(bus: Bus, tenant: str, body: bytes, *, subject: str = "", reason: str = "why") -> None:
    """Store a letter as the chassis does."""
    headers = {
        "Wayline-Tenant": tenant,
        "Wayline-Dead-Code": "invalid_message",
        "Wayline-Dead-Reason": reason,
        "Wayline-Dead-Subject": f"jobs.submit.{tenant}",
        "Wayline-Dead-Stream": "SUBMIT",
        "Wayline-Dead-Consumer": "router",
    }
    await bus.store(subject or f"dead.SUBMIT.router.{tenant}", body, headers)


@pytest.fixture
async def key(platform: Platform) -> dict[str, str]:
    secret = await create_key(await platform.store("gateway"), "acme", "ops", scopes=("admin",))
    return {"Authorization": f"Bearer {secret}"}


async def test_letters_of_others_do_not_hide_ones_own(
    gateway: Running, bus: Bus, key: dict[str, str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(dead_letters, "WINDOW", 2)
    monkeypatch.setattr(dead_letters, "WIDER", 2)
    await put_aside(bus, "acme", b"of an older version", subject="dead.SUBMIT.router")
    for number in range(3):
        await put_aside(bus, "acme", f"mine {number}".encode())
    for _ in range(20):
        await put_aside(bus, "loud", b"theirs")

    first = (await gateway.client.get("/v1/dead-letters?limit=3", headers=key)).json()
    address = f"/v1/dead-letters?limit=3&cursor={first['next_cursor']}"
    second = (await gateway.client.get(address, headers=key)).json()

    assert [letter["sequence"] for letter in first["dead_letters"]] == [4, 3, 2]
    assert [letter["sequence"] for letter in second["dead_letters"]] == [1]
    assert second["next_cursor"] is None


async def test_a_letter_whose_id_is_another_jobs_is_refused(
    gateway: Running, bus: Bus, others: Others, key: dict[str, str]
):
    await others.answer(ListJobs)
    told = Story(bus, "acme", "j1")
    await told.begin(SubmitJob(tenant="acme", job_id="j1", agent="assistant", input="one"))
    other = SubmitJob(tenant="acme", job_id="j1", agent="assistant", input="two")
    await put_aside(bus, "acme", other.to_wire())
    [letter] = (await gateway.client.get("/v1/dead-letters", headers=key)).json()["dead_letters"]

    body = {"fingerprint": letter["fingerprint"]}
    redriven = (await gateway.client.post("/v1/dead-letters/redrive", json=body, headers=key)).json()

    [sent] = redriven["letters"]
    assert (sent["outcome"], "exists with other content" in sent["reason"]) == ("refused", True)
