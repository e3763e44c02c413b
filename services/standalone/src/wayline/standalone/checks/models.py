"""Models: which providers this environment configures, and which prices nobody knows."""

from __future__ import annotations

from wayline.llm.catalogue import bundled, usable
from wayline.llm.endpoints import EndpointSettings
from wayline.llm.prices import LOCAL
from wayline.router.settings import Settings as RouterSettings
from wayline.standalone.findings import Findings, note, ok

ABOUT = "models"
VARIABLES = {
    "anthropic": "ANTHROPIC_API_KEY",
    "openai": "OPENAI_API_KEY",
    "chat": "WAYLINE_CHAT_BASE_URL",
}


async def examine_models() -> Findings:
    """Look at the variables alone: no provider is called."""
    settings = RouterSettings()
    reachable = settings.reachable()
    if not reachable:
        todo = f"set {', '.join(VARIABLES.values())}, or none: the offline model answers from your documents"
        yield note(ABOUT, "no provider is configured, so agents run on the offline model", todo)
    for name, url in reachable.items():
        yield ok(ABOUT, f"{name} at {url or 'an address that the executors know'}{_keyless(settings, name)}")
    cards = usable(bundled(), reachable)
    unknown = [card.name for card in cards if card.prices is None]
    if unknown:
        todo = "say it with `wayline models add`: until then a job with a budget cannot use them"
        yield note(ABOUT, f"nobody says what these cost: {', '.join(unknown)}", todo)
    if reachable and all(card.provider in LOCAL for card in cards):
        todo = "add yours with `wayline models add`, or name one in an agent: docs/models.md"
        yield note(ABOUT, "the catalogue has no model of the configured providers", todo)


def _keyless(settings: EndpointSettings, name: str) -> str:
    return "" if getattr(settings, f"{name}_api_key", None) else ", without a key"
