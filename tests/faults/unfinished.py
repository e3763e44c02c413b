"""What of a platform's work is not done yet: on the bus, in the tables of money, and in those of tracing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wayline.contracts.ids import trace_id

if TYPE_CHECKING:
    from .platform import FaultPlatform


async def unfinished(platform: FaultPlatform) -> list[str]:
    """Return what is not acked, not heard or not settled."""
    js, left = platform.bus.js, []
    for stream in ("SUBMIT", "RUN"):
        if (n := (await js.stream_info(stream)).state.messages) > 0:
            left.append(f"{n} messages in {stream}")
    signals = await js.consumer_info("SIGNALS", "router")
    if signals.num_pending or signals.num_ack_pending:
        left.append("signals that the router has not heard")
    if left:
        return left
    held = await platform.sql("SELECT job_id FROM router.reservations WHERE state <> 'settled'")
    return [f"reservation of {row['job_id']}" for row in held]


async def mistraced(platform: FaultPlatform, job_id: str, *, tenant: str = "default") -> list[str]:
    """Return what tracing's tables say of a job that its log does not."""
    job = await platform.job(job_id)
    columns = "status, steps, tokens, cost_usd"
    rows = await platform.sql(f"SELECT {columns} FROM tracing.jobs WHERE job_id = $1", job_id)
    used = job.money.usage
    told = [(str(job.life.status), job.model.step, used.input + used.output, job.money.cost_usd)]
    seen = [tuple(row) for row in rows]
    found = [] if seen == told else [f"{job_id}: {seen} and not {told}"]
    twice = await platform.sql(
        "SELECT span_id FROM tracing.spans WHERE trace_id = $1 GROUP BY span_id HAVING count(*) > 1",
        trace_id(tenant, job_id),
    )
    (steps,) = await platform.sql("SELECT count(*) AS n FROM tracing.steps WHERE job_id = $1", job_id)
    if steps["n"] != job.model.step:
        found.append(f"{job_id}: {steps['n']} steps and not {job.model.step}")
    return [*found, *(f"{job_id}: span {row['span_id']} twice" for row in twice)]
