"""Models that make images: a tier of the catalogue of its own, priced by the image."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field

from wayline.contracts.base import Frozen, Usd

ImageQuality = Literal["low", "medium", "high"]
ImageShape = Literal["square", "landscape", "portrait"]

ImageUsd = Annotated[Usd, Field(ge=0)]


class ImageModel(Frozen):
    """A model that makes images, and what an image of it costs."""

    provider: str
    model: str = Field(description="The name that is sent to the provider.")
    tier: Literal["image"] = "image"
    usd: dict[ImageQuality, dict[ImageShape, ImageUsd]] = Field(description="Dollars of one image.")
    prompt_usd_per_mtok: ImageUsd = Field(
        default=Decimal(0), description="Dollars per million tokens of the prompt, beside the image."
    )
    source: str = Field(default="", description="Where the figures are from, with their date.")

    @property
    def name(self) -> str:
        """Return `provider/model`."""
        return f"{self.provider}/{self.model}"
