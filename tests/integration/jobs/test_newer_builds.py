"""An executor does not claim a job whose log it cannot read whole; readers pass over what they do not know."""

import orjson

from wayline.contracts import headers as h
from wayline.contracts.jobs import RunJob
from wayline.journal import JobLog, State
from wayline.simulator.chat_server import ChatServer, Say
from wayline.testkit import until

from .conftest import chatting


async def test_a_job_with_a_newer_builds_event_is_left_and_readable(platform):
    async with ChatServer(lambda _: Say(text="done")) as chat:
        await platform.start("router", "tool_registry")
        await platform.submit("j1", model="chat/m")
        await platform.wait_until("j1", lambda job: job.routing.route is not None, "the job is routed")
        head = await JobLog(platform.bus, "default", "j1").last()
        stranger = {**head.values[-1], "type": "job.teleported", "seq": 3}
        headers = {h.RECORD: head._replace(seq=3, state=State.PARKED).header(), h.EXPECTED_LAST: str(head.sequence)}
        ack = await platform.bus.js.publish("events.default.j1", orjson.dumps({"events": [stranger]}), headers=headers)
        await platform.bus.publish(RunJob(tenant="default", job="j1", at=ack.seq), msg_id="wake")

        await platform.start("executor", executor=chatting(chat))
        await platform.submit("j2", model="chat/m")

        assert (await platform.wait_for("j2")).status == "completed"

        async def offered_and_left() -> bool:
            info = await platform.bus.js.consumer_info("RUN", "interactive")
            return info.num_redelivered is not None and info.num_ack_pending == 1

        await until(offered_and_left, why="the ticket waits for a newer executor")
        assert [event.type for event in await platform.events("j1")][-1] == "job.teleported"
        assert (await platform.job("j1")).seq == 3
