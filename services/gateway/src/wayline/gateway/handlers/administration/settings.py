"""A tenant's settings: what its agents do where they do not say otherwise."""

from __future__ import annotations

from fastapi import APIRouter

from wayline.contracts.tenant_settings import ChangeSettings, GetSettings, SettingsChange, SettingsInForce
from wayline.gateway.handlers.shared.dependencies import Admin, GatewayDependency, Reader
from wayline.gateway.openapi import fails
from wayline.gateway.strict_json import StrictRoute

router = APIRouter(prefix="/v1/settings", tags=["settings"], route_class=StrictRoute)


@router.get("", responses=fails())
async def get_settings(gateway: GatewayDependency, caller: Reader) -> SettingsInForce:
    """Return the tenant's settings as they are now; `defaults` names those that nobody has changed."""
    return await gateway.bus.ask(GetSettings(tenant=caller.tenant), SettingsInForce)


@router.patch("", responses=fails(400, 404, 413))
async def change_settings(change: SettingsChange, gateway: GatewayDependency, caller: Admin) -> SettingsInForce:
    """Change some settings: what is left out stays as it is, and null goes back to the default.

    The next job that is submitted goes by them; a job that has begun keeps what it began with. Agents that set a field
    of the same name keep their own value.
    """
    return await gateway.bus.ask(ChangeSettings(tenant=caller.tenant, change=change), SettingsInForce)
