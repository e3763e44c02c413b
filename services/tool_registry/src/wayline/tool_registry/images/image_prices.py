"""What images of the configured model cost, and the most that a call can cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, get_args

from wayline.contracts.image_models import ImageQuality, ImageShape
from wayline.contracts.tool_charges import ToolCharge

PROMPT_BYTES_MAX: Final = 4_000
"""A token is a byte at least: what a prompt can cost is bounded by it."""
PLAIN: Final[ImageQuality] = "medium"
"""The quality of a call that names none."""
_MTOK = 1_000_000


@dataclass(frozen=True, slots=True)
class ImagePrices:
    """Dollars of one image by quality and shape, and of the tokens of its prompt beside it."""

    usd: Mapping[ImageQuality, Mapping[ImageShape, Decimal]]
    prompt_usd_per_mtok: Decimal = Decimal(0)

    @classmethod
    def flat(cls, usd: Decimal) -> ImagePrices:
        """Return prices of images that all cost the same."""
        shapes = dict.fromkeys(get_args(ImageShape), usd)
        return cls(dict.fromkeys(get_args(ImageQuality), shapes))

    def of_image(self, quality: ImageQuality, shape: ImageShape, *, prompt_tokens: int) -> Decimal:
        """Return what one image cost."""
        return self.usd[quality][shape] + prompt_tokens * self.prompt_usd_per_mtok / _MTOK

    @property
    def charge(self) -> ToolCharge:
        """Return the most that one call charges, by its quality."""
        most = {
            quality: max(self.of_image(quality, shape, prompt_tokens=PROMPT_BYTES_MAX) for shape in shapes)
            for quality, shapes in self.usd.items()
        }
        return ToolCharge(usd=most[PLAIN], argument="quality", by_value=dict(most))


def known_prices(model: str) -> ImagePrices | None:
    """Return the prices of a model of the bundled catalogue."""
    from wayline.llm.catalogue import image_models

    found = next((one for one in image_models() if one.model == model), None)
    return ImagePrices(found.usd, found.prompt_usd_per_mtok) if found else None
