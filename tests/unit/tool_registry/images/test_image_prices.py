"""What images cost, and settings without which nobody would know."""

from __future__ import annotations

from decimal import Decimal

import pytest
from pydantic import SecretStr

from wayline.contracts.errors import WrongSetting
from wayline.tool_registry.images.image_prices import ImagePrices
from wayline.tool_registry.settings import Settings


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"image_model": "gpt-image-1.5"}, "image_key"),
        ({"image_model": "sd-local", "image_base_url": "http://127.0.0.1:9/v1"}, "image_usd"),
    ],
)
def test_an_image_model_without_key_or_price_is_refused(wrong: dict, says: str):
    with pytest.raises(WrongSetting, match=says):
        Settings(**wrong)


def test_the_most_of_an_image_follows_its_quality():
    prices = Settings(image_model="gpt-image-1.5", image_key=SecretStr("k")).image_prices()
    assert prices is not None

    assert prices.charge.most({"quality": "high"}) == Decimal("0.22")
    assert prices.charge.most({}) == prices.charge.most({"quality": "medium"}) == Decimal("0.071")


def test_a_price_in_the_settings_holds_for_every_image():
    usd = Decimal("0.002")
    prices = Settings(image_model="sd-local", image_base_url="http://127.0.0.1:9/v1", image_usd=usd).image_prices()

    assert prices == ImagePrices.flat(usd)
    assert prices.charge.most({"quality": "low"}) == usd
