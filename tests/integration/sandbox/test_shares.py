"""Programs of one tenant that never end leave workers to others."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace

from wayline.chassis.concurrency.tenant_turns import TenantTurns
from wayline.contracts.errors import Unavailable
from wayline.executor.app import sandbox_of
from wayline.executor.settings import Settings
from wayline.sandbox import Completed, Sandbox
from wayline.testkit import until

from .programs import program
from .test_worker_processes import SPIN, children


async def test_looping_programs_of_a_tenant_leave_workers_to_others():
    async with sandbox_of(Settings(program_seconds_max=60)) as sandbox:
        looping = [asyncio.create_task(sandbox.start(replace(program(SPIN), tenant="acme"))) for _ in range(8)]
        await until(lambda: len(children(os.getpid())) == 3, why="it has its share of the workers")

        other = await sandbox.start(replace(program("1 + 1"), tenant="other"))

        for task in looping:
            task.cancel()
        ended = await asyncio.gather(*looping, return_exceptions=True)

    assert other == Completed(2, "", asked=0)
    assert all(isinstance(error, asyncio.CancelledError) for error in ended)


async def test_a_program_waits_for_a_turn_no_longer_than_it_may():
    turns = TenantTurns(1).turn
    async with Sandbox(workers_max=1, worker_wait_s=0.01, take_turn=turns) as sandbox, turns("acme"):
        ended = await asyncio.gather(sandbox.start(replace(program("1"), tenant="acme")), return_exceptions=True)

    assert isinstance(ended[0], Unavailable)
