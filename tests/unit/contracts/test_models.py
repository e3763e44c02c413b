"""Cards: read leniently where jobs name them, kept strictly where tenants add them."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from wayline.contracts.errors import InvalidMessage
from wayline.contracts.models import ModelCard, PutModel, Rates


def put(provider: str, model: str) -> PutModel:
    card = ModelCard(provider=provider, model=model, tier="standard")
    return PutModel.from_wire(b'{"card":%s}' % card.model_dump_json().encode(), "models.put.acme")


@pytest.mark.parametrize(
    "model",
    [
        "qwen3:8b",
        "hf.co/user/Model-GGUF:Q4_K_M",
        "@cf/meta/llama",
        "accounts/x/models/y#acme",
        "ft:gpt-6-luna:org::id1",
    ],
)
def test_a_name_that_providers_use_can_be_kept(model: str):
    assert put("chat", model).card.model == model


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        ("chat", "a/../b"),
        ("chat", "/a"),
        ("chat", "a//b"),
        ("chat", "a b"),
        ("chat", "a?b"),
        ("chat", "ä"),
        ("a/b", "c"),
    ],
)
def test_a_model_name_unfit_for_a_path_cannot_be_saved(provider: str, model: str):
    with pytest.raises(InvalidMessage, match="cannot be kept"):
        put(provider, model)


@pytest.mark.parametrize("rate", ["-1", "NaN", "Infinity", "1000001"])
def test_a_rate_that_cannot_be_one_is_refused(rate: str):
    with pytest.raises(ValidationError):
        Rates.model_validate({"input": rate, "output": "1"})
