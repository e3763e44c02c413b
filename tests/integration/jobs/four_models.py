"""The four models that show every way to ask: two providers' own wire formats, and our own models on a third.

One of ours calls tools by itself, the other only writes text and is asked in the JSON protocol.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from wayline.contracts.models import ModelCard, Prices, PutModel
from wayline.contracts.models import Rates as CardRates
from wayline.simulator import Facts, Rates, Simulator
from wayline.testkit import Platform

CLAUDE, GPT, OWN, IN_WORDS = (
    "anthropic/claude-sonnet-5-5",
    "openai/gpt-6.1-terra",
    "chat/local-chat",
    "chat/local-json",
)
FOUR = (CLAUDE, GPT, OWN, IN_WORDS)
BLIND = "chat/local-blind"
"""One more of ours, which is shown neither images nor files."""
_RATES = {"input": Decimal("0.30"), "output": Decimal("1.20")}
OURS = ("local-chat", "local-json", "local-blind")
FACTS = {name: Facts(name=name, provider="local", rates=Rates(**_RATES)) for name in OURS}
"""What the simulated provider bills for ours: it keeps its own prices."""

_WRITES = ModelCard(
    provider="chat",
    model="local-json",
    tier="standard",
    tools="json",
    images=True,
    files=True,
    prices=Prices(rates=CardRates(**_RATES), source="our own machine"),
)
_CALLS = _WRITES.model_copy(
    update={
        "model": "local-chat",
        "tools": "native",
        "structured_output": True,
        "temperature": True,
        "reasoning": "effort",
        "efforts": ("low",),
    }
)
_BLIND = _WRITES.model_copy(update={"model": "local-blind", "tools": "native", "images": False, "files": False})


def endpoints(simulator: Simulator) -> dict[str, Any]:
    """Where every provider is, as settings say it."""
    openai = simulator.openai_url
    return {"anthropic_base_url": simulator.url, "openai_base_url": openai, "chat_base_url": openai}


async def put_own(platform: Platform) -> None:
    """Give the tenant our own models."""
    for card in (_CALLS, _WRITES, _BLIND):
        await platform.bus.ask(PutModel(tenant=platform.tenant, card=card), ModelCard)
