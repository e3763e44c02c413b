"""Reservations: what a job may spend, held from its first record to its end."""

from __future__ import annotations

from decimal import Decimal

from wayline.contracts.base import Frozen, Request


class Settled(Frozen):
    settled: bool


class SettleJob(Request, subject="budgets.settle.{tenant}", replies=Settled):
    """Turn a job's reservation into what it really cost; asking again changes nothing."""

    job_id: str
    cost_usd: Decimal | None
