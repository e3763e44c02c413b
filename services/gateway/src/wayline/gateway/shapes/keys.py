"""Bodies about API keys."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from wayline.contracts import ids
from wayline.gateway.keys import SCOPES, Scope
from wayline.gateway.paging import Paged
from wayline.gateway.shapes.body import Body, Label
from wayline.gateway.shapes.limits import MeterRates


def _in_the_future(moment: datetime) -> datetime:
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    if moment <= datetime.now(UTC):
        raise ValueError("this moment is over; leave it out for a key that does not expire")
    return moment


class KeyBody(Body):
    """An API key to create."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"name": "ci", "tenant": "acme", "scopes": ["read", "write"]}]}
    )

    name: Label = Field(description="Whose or what it is for; jobs and signals say it.")
    tenant: ids.Tenant | None = Field(default=None, description="Left out: the caller's own.")
    scopes: Annotated[tuple[Scope, ...], Field(min_length=1, max_length=len(SCOPES))] = Field(
        default=("read", "write"),
        description="`read`; `write`: jobs, documents, memories and logins of users to MCP servers; `tools`: the tools "
        "of MCP servers over /mcp; `approve`: tool calls that wait for a person; `memory:release`: facts that wait for "
        "one; `webhooks`: the tenant's webhooks; `admin`: these, the tenant's agents, models, schedules, budgets, dead "
        "letters and keys; `operator`: all tenants and their keys.",
    )
    user_id: Label | None = Field(
        default=None,
        description="For whom it acts, and for nobody else: its jobs, calls and logins are this user's. null: for any "
        "user of its tenant, as each request names one.",
    )
    limits: MeterRates | None = Field(
        default=None, description="How many requests and jobs it may send; null: as many as its tenant's keys each."
    )
    expires_at: Annotated[datetime, AfterValidator(_in_the_future)] | None = Field(
        default=None, description="When it stops working; null: when it is revoked."
    )


class KeyChanges(Body):
    """What to change of an API key; what is left out stays."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"limits": {"requests": {"per_minute": 600}}}]})

    name: Label = ""
    limits: MeterRates | None = Field(
        default=None, description="As at its creation; null: as many as its tenant's keys each."
    )


class Key(BaseModel):
    """What may be shown of an API key."""

    id: str
    prefix: str = Field(description="How the key begins: enough to recognise it.")
    tenant: str
    name: str
    scopes: tuple[Scope, ...]
    user_id: str | None = Field(description="For whom it acts; null: for any user of its tenant.")
    limits: MeterRates | None = Field(description="How much it may send; null: as its tenant's keys.")
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None = Field(description="To the minute.")
    revoked_at: datetime | None


class KeyCreated(Key):
    """A key that was just created."""

    key: str = Field(description="The whole key. Nothing can show it again.")


class KeyPage(Paged):
    """A page of API keys, newest first."""

    keys: tuple[Key, ...]


class KeyRevoked(BaseModel):
    """Whether a key was valid until now."""

    id: str
    revoked: bool
