"""Who asks, and what goes on for its tenant."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, Field

from wayline.contracts.budgets import Budget
from wayline.contracts.overview import OpenJobs, SpentLately
from wayline.gateway.keys import Scope


class Me(BaseModel):
    """The caller, as the gateway sees it."""

    tenant: str
    key_id: str | None = Field(description="null: no key was shown, because none exists yet.")
    name: str
    scopes: tuple[Scope, ...] = Field(description="What it may do.")
    user_id: str | None = Field(description="For whom its key acts; null: for any user of its tenant.")
    expires_at: datetime | None = Field(description="When its key stops working; null: when it is revoked.")
    open: bool = Field(description="No key exists yet: every program on this machine may do everything.")
    version: str = Field(description="Of the gateway that answered.")
    commit: str | None = Field(description="Of which that gateway was built; null: it is not known.")
    python: str = Field(description="The version of Python that it runs on.")
    libraries: dict[str, str] = Field(description="Versions of the libraries that speak to NATS and Postgres, by name.")
    links: dict[str, str] = Field(description="Where people look: `console` and `grafana`, where they are configured.")


class Overview(BaseModel):
    """What goes on for a tenant: what waits, what it costs, what needs a person."""

    at: datetime
    open: tuple[OpenJobs, ...] = Field(
        description="Jobs that have not ended, by status, lane and what they wait for; the kind with the oldest first."
    )
    decisions: int = Field(description="Jobs that wait for a person: `GET /v1/approvals`.")
    decisions_oldest_at: datetime | None
    spent: tuple[SpentLately, ...] = Field(description="In the last day and in the last seven.")
    budgets: tuple[Budget, ...] = Field(description="Budgets that have reached a threshold of their alerts.")
    dead_letters: int | None = Field(description="Messages that could not be handled; null: the key lacks `admin`.")
