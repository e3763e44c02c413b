"""Decisions on approvals as they come over the bus: what is wrong with them, and who is told."""

from __future__ import annotations

from wayline.chassis import Bus
from wayline.chassis.connection.delivery import Delivery
from wayline.contracts import headers as h
from wayline.contracts.base import tenant_of
from wayline.contracts.errors import NotFound, Problem
from wayline.contracts.jobs import DecideApproval, may_reply_to
from wayline.journal import JobLog, ResultConflict, fold
from wayline.llm.structured import value_problem

STATUS = {NotFound.code: NotFound.status, ResultConflict.code: ResultConflict.status}


class Approvals:
    """Checks decisions against the logs of their jobs, before a job is woken."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def problem(self, decided: DecideApproval) -> str | None:
        """Return why a decision approves nothing; None: it may count, or comes too late, which its job sees."""
        if decided.decision != "approve" and decided.hash is None:
            return None
        job = fold([event async for event in JobLog(self._bus, decided.tenant, decided.job_id).read()])
        asked = next((one for one in job.tools.pending if one.approval_id == decided.approval_id), None)
        if asked is not None and decided.hash is not None and decided.hash != asked.hash:
            return f"approval {asked.approval_id} of {asked.tool} is asked for something else now: look at it again"
        if asked is None or decided.decision != "approve" or (decided.arguments is None and asked.input is None):
            return None
        wrong = value_problem(job.tools.decision_schema(asked), decided.arguments or {})
        if wrong is None:
            return None
        return f"approval {asked.approval_id} of {asked.tool}: {wrong}. Correct `arguments` and decide again"

    async def refuse(self, delivery: Delivery, code: str, reason: str) -> None:
        """Tell the sender of a decision or a signal that it does not count, where the message has a reply subject."""
        subject, tenant = delivery.headers.get(h.REPLY_TO), tenant_of(delivery.subject)
        if subject is None or not may_reply_to(tenant, subject):
            return
        problem = Problem(code=code, status=STATUS.get(code, 422), title="It does not count", detail=reason)
        body, headers = problem.model_dump_json().encode(), {h.ERROR: code}
        await self._bus.nc.publish(self._bus.inbox_of(tenant, subject), body, headers=headers)
