"""Stop what a request of an MCP client has begun."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import structlog

from wayline.contracts.errors import WaylineError
from wayline.contracts.jobs import Cancel, Signal
from wayline.contracts.tools import CancelTool
from wayline.gateway.handlers.mcp.call_ids import CALLS_MAX, CallIds
from wayline.gateway.handlers.shared.dependencies import Gateway
from wayline.gateway.handlers.shared.read_job import find_log

log = structlog.get_logger()

CANCELLED_BY: Final = "its MCP client"


async def cancel(gateway: Gateway, tenant: str, begun: CallIds) -> None:
    """Cancel the job and the tool call of a request, as far as there are any."""
    with suppress(WaylineError):
        for number in range(1, CALLS_MAX + 1):
            await gateway.bus.send(CancelTool(tenant=tenant, key=begun.tool_key(tenant, number)))
    await cancel_job(gateway, tenant, begun.job_id)


async def cancel_job(gateway: Gateway, tenant: str, job_id: str) -> None:
    """Ask a job to stop where there is one."""
    try:
        await find_log(gateway, tenant, job_id)
        await gateway.signals.send(Signal(tenant=tenant, job_id=job_id, signal=Cancel(by=CANCELLED_BY)))
    except WaylineError as error:
        log.info("a cancelled request stopped no job", job_id=job_id, why=str(error))
