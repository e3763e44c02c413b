"""Bodies about tenants."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, StringConstraints

from wayline.contracts import ids
from wayline.contracts.tenants import REASON_MAX
from wayline.gateway.shapes.body import ONE_LINE, Body


class TenantBody(Body):
    """A tenant to create."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"tenant": "acme"}]})

    tenant: ids.Tenant


class DisableBody(Body):
    """The reason why a tenant is disabled, shown to its callers."""

    reason: Annotated[str, StringConstraints(max_length=REASON_MAX, pattern=ONE_LINE)] = ""
