"""What a held job may spend: asked of the router, which owns the reservations."""

from __future__ import annotations

from decimal import Decimal

from wayline.chassis import Bus, keep_trying
from wayline.contracts.budgets import (
    MODELS_USED_MAX,
    ExtendBudget,
    Extended,
    JobUse,
    ModelUse,
    ReleaseBudget,
    Released,
    Settled,
    SettleJob,
)
from wayline.contracts.models import TOKENS_MAX
from wayline.executor.decide.extraction import remembers_for
from wayline.executor.decide.memory_summary import summarizes_for
from wayline.executor.decide.prompt_cache import left_warm
from wayline.journal import Job, ModelTotals, run_result
from wayline.llm.prices import LOCAL


class Budgets:
    """Every request may be asked again; a router that is away is waited for."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def extend(self, job: Job, *, attempt_id: str, total_usd: Decimal | None, waits: bool) -> Extended:
        """Have `total_usd` held for a job in all, before the call that needs it. Raises Reject.

        Where it `waits` for what is refused, the router wakes it once there is room.
        """
        asked = ExtendBudget(
            tenant=job.tenant,
            job_id=job.job_id,
            attempt_id=attempt_id,
            total_usd=total_usd,
            cap_usd=job.money.budget_usd,
            seq=job.seq,
            waits=waits,
        )
        return await keep_trying("hold money", lambda: self._bus.ask(asked, Extended))

    async def release(self, asked: ReleaseBudget) -> None:
        """Give back what a parked job has not spent."""
        await keep_trying("release money", lambda: self._bus.ask(asked, Released))

    async def settle(self, job: Job) -> None:
        """Turn what was held into what the job cost for sure; what nobody has counted stands beside it, at its most."""
        unsure = job.money.costs.unsettled_upper_usd
        cost_usd = None if unsure is None else job.money.cost_usd
        user_id = summarizes_for(job)
        asked = SettleJob(
            tenant=job.tenant,
            job_id=job.job_id,
            cost_usd=cost_usd,
            unsettled_usd=unsure or Decimal(0),
            left_warm=left_warm(job),
            used=used(job),
            result=run_result(job),
            remember_for=remembers_for(job),
            summarize_for=user_id,
            agent=job.life.submitted.agent if user_id is not None and job.life.submitted is not None else None,
            has_session=job.life.submitted is None or job.life.submitted.session_id is not None,
        )
        # While the router is away the ticket stays ours, or another executor settles from the same record.
        await keep_trying("settle a job", lambda: self._bus.ask(asked, Settled))


def used(job: Job) -> JobUse | None:
    """Return what a job used of models that cost money, and how large its tools were; None where none answered."""
    paid = [one for one in job.money.used if one.model.partition("/")[0] not in LOCAL]
    if not paid or job.life.submitted is None or job.model.asked is None:
        return None
    tools = next((part for part in job.model.asked.prefix if part.part == "tools"), None)
    return JobUse(
        agent=job.life.submitted.agent,
        tools=tools.count if tools else 0,
        tools_tokens=tools.tokens if tools else 0,
        models=tuple([_bounded(one) for one in paid[:MODELS_USED_MAX]]),
    )


def _bounded(totals: ModelTotals) -> ModelUse:
    """Return totals as they travel: none of their numbers is larger than a message may say."""
    return ModelUse(
        model=totals.model,
        slot=totals.slot,
        calls=totals.calls,
        output_tokens=min(totals.output_tokens, TOKENS_MAX),
        longest_tokens=min(totals.longest_tokens, TOKENS_MAX),
        density=totals.density,
    )
