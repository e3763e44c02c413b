"""What `image_generate` works with, made of the settings."""

from __future__ import annotations

from dataclasses import dataclass

from wayline.chassis import Bus
from wayline.contracts.tool_charges import ToolCharge
from wayline.guarded_http import GuardedClient
from wayline.tool_registry.images.image_store import ImageStore
from wayline.tool_registry.images.images_api import ImagesApi
from wayline.tool_registry.settings import Settings
from wayline.tool_registry.web.rate_limit import RateLimit
from wayline.tool_registry.web.web_tools import reaching

STORE_S = 45.0
"""What a call may take beside making its image."""


@dataclass(frozen=True, slots=True)
class ImageTools:
    """The configured model, and where its images go."""

    api: ImagesApi
    store: ImageStore
    limit: RateLimit
    client: GuardedClient
    charge: ToolCharge
    timeout_s: float

    async def close(self) -> None:
        """Close the connections that are open."""
        await self.client.close()


def image_tools(settings: Settings, bus: Bus) -> ImageTools | None:
    """Return what makes images; None where no model is configured."""
    prices = settings.image_prices()
    if settings.image_model is None or prices is None:
        return None
    client = GuardedClient(
        reaching(settings.image_base_url),
        user_agent=settings.web_user_agent,
        proxy=settings.proxy_url,
        ca_file=settings.ca_path,
    )
    api = ImagesApi(
        client,
        base_url=settings.image_base_url,
        key=settings.image_key.get_secret_value() if settings.image_key else None,
        model=settings.image_model,
        prices=prices,
        timeout_s=settings.image_timeout_s,
        image_max_bytes=settings.image_max_bytes,
    )
    limit = RateLimit(settings.images_per_minute)
    return ImageTools(api, ImageStore(bus), limit, client, prices.charge, settings.image_timeout_s + STORE_S)
