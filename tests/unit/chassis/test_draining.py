"""A replica says what it is also while what it needs does not answer."""

from __future__ import annotations

import asyncio

import pytest

from wayline.chassis import draining
from wayline.chassis.draining import Draining
from wayline.contracts.replicas import DescribeReplicas


async def test_a_replica_is_described_while_its_checks_hang(monkeypatch: pytest.MonkeyPatch):
    async def hangs() -> dict[str, str]:
        await asyncio.Event().wait()
        return {}

    monkeypatch.setattr(draining, "DESCRIBED_WITHIN_S", 0.0)

    told = await Draining("router", hangs).on_describe(DescribeReplicas(tenant="default", service="router"))

    assert told.name.startswith("router-")
    assert (told.ready, list(told.needs)) == (False, ["checks"])
