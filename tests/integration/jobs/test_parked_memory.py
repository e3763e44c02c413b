"""A parked job costs nothing: no worker, no memory."""

import gc

import pytest

from wayline.executor.hold.held_job import HeldJob
from wayline.executor.hold.log_writer import LogWriter
from wayline.simulator.chat_server import ChatServer, Say, turns
from wayline.testkit import until
from wayline.testkit.walks import length

from .conftest import chatting, with_tools

JOBS = length(1_000, short=80)

# What a registry leaves that died with the call in hand: begun, and its lease long over.
BEGUN = """
INSERT INTO tools.calls (tenant, key, job_id, tool, effect, state, attempt, owner, lease_until)
SELECT 'default', format('default/j%s/1/1', n), format('j%s', n), 'effects__pay_once', 'once', 'started', 1, 'gone',
       now() - interval '1 hour'
FROM generate_series(1, $1::int) AS n
"""


@pytest.mark.slow
async def test_an_executor_keeps_nothing_of_many_parked_jobs(platform, effects):
    await effects.start()
    async with ChatServer(turns(Say(tools=(("effects__pay_once", {}),)))) as chat:
        await platform.start(
            "router",
            "executor",
            "tool_registry",
            executor=chatting(chat),
            tool_registry=with_tools(effects.settings()),
        )
        async with platform.superuser() as conn:
            await conn.execute(BEGUN, JOBS)

        for n in range(1, JOBS + 1):
            await platform.submit(f"j{n}", model="chat/m")

        await platform.wait_until(f"j{JOBS}", lambda job: job.life.status == "parked", "the last job is parked")
        await platform.wait_until_empty("SUBMIT", "RUN")

        def nothing_held() -> bool:
            gc.collect()
            return not any(isinstance(one, HeldJob | LogWriter) for one in gc.get_objects())

        await until(nothing_held, why="no held job and no log writer of a parked job is left")
        assert effects.calls() == []
        states = [(await platform.job(f"j{n}")).life.status for n in range(1, JOBS + 1, 50)]
        assert set(states) == {"parked"}
