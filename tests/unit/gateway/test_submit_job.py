"""A job that the bus has stored is accepted, whatever becomes of the note about it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from nats.js.api import PubAck

from wayline.contracts.jobs import SubmitJob
from wayline.gateway.handlers.shared.dependencies import Gateway
from wayline.gateway.handlers.shared.submit_job import submit
from wayline.store import PostgresUnavailable
from wayline.telemetry import Telemetry


async def test_a_database_that_is_away_does_not_undo_an_acceptance():
    published: list[str] = []

    class Bus:
        async def publish(self, message: SubmitJob, *, msg_id: str, headers: Any, within_s: float) -> PubAck:
            published.append(msg_id)
            return PubAck(stream="SUBMIT", seq=1)

    class Submissions:
        async def accepted(self, job: SubmitJob, *, key: str | None) -> None:
            raise PostgresUnavailable(where="here", cause="gone")

    class Router:
        async def require_runnable(self, job: SubmitJob) -> None: ...

        async def require_room(self, tenant: str) -> None: ...

        async def require_idle_session(self, job: SubmitJob) -> None: ...

        async def require_place(self, job: SubmitJob, *, key_id: str | None) -> None: ...

    parts = SimpleNamespace(bus=Bus(), submissions=Submissions(), router=Router(), telemetry=Telemetry("gateway"))
    gateway = cast("Gateway", parts)
    job = SubmitJob(tenant="default", job_id="j1", agent="assistant", input="x")

    assert await submit(gateway, job, own_id=False, key=None, caller=None) == "j1"
    assert published == ["j1"]
