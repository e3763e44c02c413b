"""Replicas over HTTP: one is found by its name also while others answer sooner, or do not know it."""

from __future__ import annotations

import asyncio

from wayline.contracts.replicas import DescribeReplicas, DrainReplica, ReplicaState
from wayline.gateway.adapters.keys import create_key
from wayline.testkit import Platform

from .conftest import Running
from .others import REPLICA, Others

SLOW = REPLICA.model_copy(update={"name": "executor-b-7", "ready": False, "needs": {"postgres": "no answer"}})


async def later(_: DescribeReplicas) -> ReplicaState:
    # Longer than an asker waits for further answers where it says nothing else.
    await asyncio.sleep(0.6)
    return SLOW


async def test_a_replica_that_answers_late_is_listed_too(gateway: Running, others: Others):
    await others.answer(DescribeReplicas, everyone=True)
    await others.answer(DescribeReplicas, later, everyone=True)

    listed = (await gateway.client.get("/v1/replicas")).json()

    found = {one["name"]: one["ready"] for one in listed["replicas"] if one["service"] == "executor"}
    assert found == {REPLICA.name: True, SLOW.name: False}
    assert [one["ready"] for one in listed["replicas"] if one["service"] == "gateway"] == [True]
    assert "router" in listed["unanswered"]


async def test_draining_a_replica_needs_no_list_and_is_audited(gateway: Running, others: Others):
    await others.answer(DrainReplica, everyone=True)

    drained = await gateway.client.post(f"/v1/replicas/{REPLICA.name}/drain", json={"finish_s": 5})
    undone = await gateway.client.post(f"/v1/replicas/{REPLICA.name}/undrain")
    changes = (await gateway.client.get("/v1/audit")).json()["entries"]

    assert [one.status_code for one in (drained, undone)] == [200, 200]
    assert [(one.undo, one.finish_s) for one in others.asked if isinstance(one, DrainReplica)] == [
        (False, 5),
        (True, 0),
    ]
    assert [(one["kind"], one["name"], one["operation"]) for one in reversed(changes)] == [
        ("replica", REPLICA.name, "drain_replica"),
        ("replica", REPLICA.name, "undrain_replica"),
    ]


async def test_an_unknown_replica_is_404_and_a_silent_service_503(gateway: Running, others: Others, platform: Platform):
    store = await platform.store("gateway")
    admin = await create_key(store, "default", "adm", scopes=("read", "write", "admin"))
    operator = await create_key(store, "default", "ops", scopes=("operator",))
    gateway.client.headers["Authorization"] = f"Bearer {operator}"

    away = await gateway.client.post(f"/v1/replicas/{REPLICA.name}/drain")
    await others.answer(DescribeReplicas, everyone=True)
    gone = await gateway.client.post("/v1/replicas/executor-b-7/drain")
    no_service = await gateway.client.post("/v1/replicas/host-1/drain")
    refused = await gateway.client.post(
        f"/v1/replicas/{REPLICA.name}/drain", headers={"Authorization": f"Bearer {admin}"}
    )
    await store.close()

    assert [one.status_code for one in (away, gone, no_service, refused)] == [503, 404, 404, 403]
    assert "executor-b-7" in gone.json()["detail"]
