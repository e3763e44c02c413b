"""A few of the hostile tenant's cases beside a tenant at work; `make hostile` runs them all."""

from __future__ import annotations

from base64 import b64encode

import pytest

from ...hostile.attack import Victim
from ...hostile.cases import CASES, SLICE

KEY = f"k:{b64encode(bytes(32)).decode()}"
OF_SLICE = [case for case in CASES if case.name in SLICE]


@pytest.mark.parametrize("case", OF_SLICE, ids=lambda case: case.name)
async def test_a_hostile_tenant_leaves_the_calls_of_another_known(platform, case):
    # A read that fails is not made again: each time costs as much.
    settings = {"server_allowed_hosts": ["127.0.0.1:*"], "connect_timeout_s": 5, "keys": KEY, "retry_after_s": []}
    await platform.registry(platform.effects.settings(), **settings)
    victim = Victim(platform.bus, "acme", "effects__pay_once")
    await victim.call()

    async with victim.at_work():
        came = await case.run(platform.bus, platform.tenant, job="h1")
    await victim.call()

    assert came in case.outcomes
    assert (victim.unknown, victim.failed) == (0, 0)
    assert victim.calls > 2


def test_the_slice_names_cases_that_there_are():
    assert {case.name for case in OF_SLICE} == set(SLICE)
    assert len(CASES) >= 120
