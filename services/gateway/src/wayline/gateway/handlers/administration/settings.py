"""A tenant's settings: what its agents do where they do not say otherwise."""

from __future__ import annotations

from fastapi import APIRouter, Response

from wayline.contracts.tenant_settings import ChangeSettings, GetSettings, SettingsChange, SettingsInForce
from wayline.gateway.conditions import IfUnchanged, entity_tag
from wayline.gateway.handlers.shared.changing import changing, tagged
from wayline.gateway.handlers.shared.dependencies import Admin, GatewayDependency, Reader
from wayline.gateway.openapi import tags
from wayline.gateway.strict_json import StrictRoute

router = APIRouter(prefix="/v1/settings", tags=["settings"], route_class=StrictRoute)


@router.get("", responses=tags())
async def get_settings(gateway: GatewayDependency, caller: Reader, response: Response) -> SettingsInForce:
    """Return the tenant's settings as they are now; `defaults` names those that nobody has changed."""
    found = await gateway.bus.ask(GetSettings(tenant=caller.tenant), SettingsInForce)
    return tagged(response, found, _tag(found))


def _tag(settings: SettingsInForce) -> str:
    return entity_tag(settings.model_dump(mode="json"))


@router.patch("", responses=tags(400, 404, 412, 413))
async def change_settings(
    change: SettingsChange, gateway: GatewayDependency, caller: Admin, condition: IfUnchanged, response: Response
) -> SettingsInForce:
    """Change some settings: what is left out stays as it is, and null goes back to the default.

    The next job that is submitted goes by them; a job that has begun keeps what it began with. Agents that set a field
    of the same name keep their own value.
    """

    async def present() -> str:
        return _tag(await gateway.bus.ask(GetSettings(tenant=caller.tenant), SettingsInForce))

    async with changing(gateway, caller, "settings", "", condition=condition, present=present):
        changed = await gateway.bus.ask(ChangeSettings(tenant=caller.tenant, change=change), SettingsInForce)
    return tagged(response, changed, _tag(changed))
