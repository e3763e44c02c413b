"""Models: which providers the running executors can call, what agents name beside it, and which prices nobody knows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from wayline.llm.catalogue import bundled, usable
from wayline.llm.prices import LOCAL
from wayline.router.settings import Settings as RouterSettings
from wayline.standalone.checks.gateway import gateway_url
from wayline.standalone.client import Address, Api, ApiError
from wayline.standalone.findings import Finding, Findings, note, ok, warning
from wayline.standalone.installation import Installation
from wayline.standalone.settings import Settings

ABOUT = "models"
VARIABLES = {
    "anthropic": "ANTHROPIC_API_KEY",
    "openai": "OPENAI_API_KEY",
    "chat": "WAYLINE_CHAT_BASE_URL",
}
TIERS = ("flash", "standard", "premium", "reasoning")
SLOTS = ("fast", "primary", "escalation", "reasoning")


async def examine_models(settings: Settings, installation: Installation) -> Findings:
    """Ask the system that runs; where none does, look at the variables that it would be started with."""
    url = gateway_url(settings, installation)
    if url is None:
        for finding in _configured_here():
            yield finding
        return
    try:
        async with Api(Address(url, os.environ.get("WAYLINE_API_KEY") or None)) as api:
            providers = (await api.get("/v1/providers"))["providers"]
            models, agents = await api.get("/v1/models"), (await api.get("/v1/agents"))["agents"]
    except ApiError as error:
        todo = "see the lines above; where keys are in use, set WAYLINE_API_KEY"
        yield note(ABOUT, f"nobody says which providers executors can call: {error}", todo)
        return
    for finding in examine_running(providers, models, agents):
        yield finding


def examine_running(
    providers: list[dict[str, Any]], models: dict[str, Any], agents: list[dict[str, Any]]
) -> Iterator[Finding]:
    """What the gateway told of executors, the catalogue and the agents."""
    there = {provider["name"] for provider in providers}
    remote = [provider for provider in providers if provider["name"] not in LOCAL]
    for provider in remote:
        yield ok(ABOUT, f"executors call {provider['name']} at {provider['host']}{_keyless(provider['keyed'])}")
    if not remote:
        todo = f"set {', '.join(VARIABLES.values())} where `wayline up` or the executors start, or none of them"
        yield note(ABOUT, "executors have no provider, so agents run on the offline model", todo)
    by_name = {card["provider"] + "/" + card["model"]: card for card in models["models"]}
    usable_cards = [by_name[name] for name in models["usable"] if name in by_name]
    believed = {card["provider"] for card in usable_cards} - there
    if believed:
        todo = f"{_variables(believed)}: set it for executors and routers alike, and start both again"
        yield warning(ABOUT, f"routers send jobs to {_list(believed)}, which executors cannot call", todo)
    for agent in agents:
        yield from _of_agent(agent, there, {card["tier"] for card in usable_cards if card["provider"] not in LOCAL})
    yield from _unpriced(name for name in models["usable"] if name in by_name and by_name[name]["prices"] is None)
    if remote and all(card["provider"] in LOCAL for card in usable_cards):
        yield _empty_catalogue()


def _of_agent(agent: dict[str, Any], there: set[str], tiers: set[str]) -> Iterator[Finding]:
    """What an agent names and nobody can give it."""
    config = agent["config"]
    named = [config["model"], *(config["routing"][slot] for slot in SLOTS), *config["routing"]["fallbacks"]]
    for name in dict.fromkeys(name for name in named if name):
        provider = name.partition("/")[0]
        if name in TIERS:
            if name not in tiers:
                todo = "set the key of a provider that has one, or add a model with `wayline models add`"
                yield warning(ABOUT, f"agent {agent['name']} names the tier {name}, which has no model here", todo)
        elif provider not in there:
            todo = f"set {_variables({provider})} where the executors and routers start, and start them again"
            yield warning(ABOUT, f"agent {agent['name']} names {name}, but executors have no {provider}", todo)


def _configured_here() -> Iterator[Finding]:
    """What this shell's variables would configure: no provider is called."""
    settings = RouterSettings()
    reachable = settings.reachable()
    if not reachable:
        todo = f"set {', '.join(VARIABLES.values())}, or none: the offline model answers from your documents"
        yield note(ABOUT, "no provider is configured in this shell, so agents would run on the offline model", todo)
    for name, url in reachable.items():
        keyed = bool(getattr(settings, f"{name}_api_key", None))
        yield ok(ABOUT, f"{name} at {url or 'an address that the executors know'}{_keyless(keyed)}")
    cards = usable(bundled(), reachable)
    yield from _unpriced(card.name for card in cards if card.prices is None)
    if reachable and all(card.provider in LOCAL for card in cards):
        yield _empty_catalogue()


def _unpriced(names: Iterator[str]) -> Iterator[Finding]:
    unknown = ", ".join(names)
    if unknown:
        todo = "say it with `wayline models add`: until then a job with a budget cannot use them"
        yield note(ABOUT, f"nobody says what these cost: {unknown}", todo)


def _empty_catalogue() -> Finding:
    todo = "add yours with `wayline models add`, or name one in an agent: docs/models.md"
    return note(ABOUT, "the catalogue has no model of the configured providers", todo)


def _keyless(keyed: bool) -> str:
    return "" if keyed else ", without a key"


def _variables(providers: set[str]) -> str:
    return _list({VARIABLES.get(name, f"what configures {name}") for name in providers})


def _list(names: set[str]) -> str:
    return ", ".join(sorted(names))
