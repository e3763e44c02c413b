"""Tenants: whose jobs, agents, documents and money are kept apart from everybody else's."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from wayline.contracts import ids
from wayline.contracts.base import Frozen, Request

REASON_MAX = 500
TENANTS_LISTED_MAX = 500
WEIGHT_MAX = 100


class Tenant(Frozen):
    """One tenant. A disabled one begins no jobs and its API keys are refused; its running jobs go on."""

    tenant: ids.Tenant
    created_at: datetime
    disabled_at: datetime | None = None
    disabled_reason: str = ""
    weight: int = Field(
        default=1,
        ge=1,
        le=WEIGHT_MAX,
        description="While several tenants wait in one lane, their jobs begin in proportion to their weights.",
    )
    full: str | None = Field(
        default=None,
        description="Why its new jobs are refused for now, and what helps; null: they are accepted, or nobody looked.",
    )


class TenantList(Frozen):
    """Tenants by name."""

    tenants: tuple[Tenant, ...]
    next_after: str | None = Field(default=None, description="The `after` of the next page; null: there is none.")


class CreateTenant(Request, subject="tenants.create.{tenant}", replies=Tenant):
    """Create the tenant that the subject names, with the bundled agents."""


class GetTenant(Request, subject="tenants.get.{tenant}", replies=Tenant):
    """Ask whether there is such a tenant, and whether it is disabled."""


class ListTenants(Request, subject="tenants.list.{tenant}", replies=TenantList):
    """Ask for all tenants; the subject names the tenant of who asks."""

    limit: int = Field(default=100, ge=1, le=TENANTS_LISTED_MAX)
    after: str = Field(default="", max_length=64, description="Only tenants whose name is greater.")


class DisableTenant(Request, subject="tenants.disable.{tenant}", replies=Tenant):
    """Refuse a tenant's new jobs and its API keys from now on."""

    reason: str = Field(default="", max_length=REASON_MAX)


class EnableTenant(Request, subject="tenants.enable.{tenant}", replies=Tenant):
    """Accept a disabled tenant's jobs and API keys again."""


class SetTenantWeight(Request, subject="tenants.weight.{tenant}", replies=Tenant):
    """Set what a tenant's jobs weigh in a lane in which several tenants wait."""

    weight: int = Field(ge=1, le=WEIGHT_MAX)


class StoredNoted(Frozen):
    """The bytes are counted."""

    over: bool = Field(
        default=False,
        description="The tenant is so far beyond its share that its running jobs end with what they have.",
    )


class NoteStored(Request, subject="tenants.stored.{tenant}", replies=StoredNoted):
    """Count bytes that a service has stored for a tenant, in its job logs and in the object store of payloads."""

    stored_bytes: int = Field(ge=1)
