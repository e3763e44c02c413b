"""Bodies about models and their providers."""

from __future__ import annotations

from pydantic import BaseModel, Field

from wayline.contracts.models import Provider, ProviderList


class Providers(BaseModel):
    """What executors can call: a job goes to any of them, so they should all be configured alike."""

    providers: tuple[Provider, ...] = Field(description="Those that all have, at the same address.")
    executors: tuple[ProviderList, ...] = Field(description="What each of those that answered has.")
