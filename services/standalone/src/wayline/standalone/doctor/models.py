"""Models: the providers that running executors can call, those that agents name, and models without a price."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from wayline.client import Address, ApiError, Client
from wayline.llm.catalogue import bundled, usable
from wayline.llm.prices import LOCAL
from wayline.router.settings import Settings as RouterSettings
from wayline.standalone.doctor.finding import Finding, Findings, note, ok, warning
from wayline.standalone.doctor.gateway import gateway_url
from wayline.standalone.settings import Settings
from wayline.standalone.setup.installation import Installation

ABOUT = "models"
VARIABLES = {
    "anthropic": "ANTHROPIC_API_KEY",
    "openai": "OPENAI_API_KEY",
    "chat": "WAYLINE_CHAT_BASE_URL",
}
TIERS = ("flash", "standard", "premium", "reasoning")
NAMED_MAX = 3
"""How many executors of the same configuration are named."""
SLOTS = ("fast", "primary", "escalation", "reasoning")


async def examine_models(settings: Settings, installation: Installation) -> Findings:
    """Examine the running system; where none runs, the variables with which it would start."""
    url = gateway_url(settings, installation)
    if url is None:
        for finding in _examine_variables():
            yield finding
        return
    try:
        async with Client(Address(url, os.environ.get("WAYLINE_API_KEY") or None)) as client:
            executors = (await client.get("/v1/providers"))["executors"]
            models, agents = (
                await client.whole("/v1/models", "models"),
                (await client.whole("/v1/agents", "agents"))["agents"],
            )
    except ApiError as error:
        todo = "see the lines above; where keys are in use, set WAYLINE_API_KEY"
        yield note(ABOUT, f"the providers that executors can call are unknown: {error}", todo)
        return
    for finding in examine_running(executors, models, agents):
        yield finding


def examine_running(
    executors: list[dict[str, Any]], models: dict[str, Any], agents: list[dict[str, Any]]
) -> Iterator[Finding]:
    """Examine the gateway's lists of executors, models and agents."""
    there = {provider["name"] for executor in executors for provider in executor["providers"]}
    yield from _examine_executors(executors)
    by_name = {card["provider"] + "/" + card["model"]: card for card in models["models"]}
    usable_cards = [by_name[name] for name in models["usable"] if name in by_name]
    believed = {card["provider"] for card in usable_cards} - there
    if believed:
        todo = f"{_variables(believed)}: set it for executors and routers alike, and start both again"
        yield warning(ABOUT, f"routers send jobs to {_list(believed)}, which executors cannot call", todo)
    for agent in agents:
        yield from _examine_agent(
            agent, there, {card["tier"] for card in usable_cards if card["provider"] not in LOCAL}
        )
    yield from _unpriced(name for name in models["usable"] if name in by_name and by_name[name]["prices"] is None)
    if there - set(LOCAL) and all(card["provider"] in LOCAL for card in usable_cards):
        yield _empty_catalogue()


def _examine_executors(executors: list[dict[str, Any]]) -> Iterator[Finding]:
    """Examine which providers the executors can call; a job goes to any of them, so they should not differ."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for executor in executors:
        remote = (one for one in executor["providers"] if one["name"] not in LOCAL)
        calls = sorted(f"{one['name']} at {one['host']}{_keyless(one['keyed'])}" for one in remote)
        alike.setdefault(tuple(calls), []).append(executor["executor"] or "one of an older build")
    if len(alike) > 1:
        text = "; ".join(_differing(names, calls) for calls, names in alike.items())
        todo = "give all the same variables and start them again: a job may go to any, and fails where its model is not"
        yield warning(ABOUT, f"executors are configured differently: {text}", todo)
        return
    who = f"{len(executors)} executors" if len(executors) > 1 else "executors"
    (calls,) = alike
    for call in calls:
        yield ok(ABOUT, f"{who} call {call}")
    if not calls:
        todo = f"set {', '.join(VARIABLES.values())} where `wayline up` or the executors start, or none of them"
        yield note(ABOUT, f"{who} have no provider, so agents run on the offline model", todo)


def _differing(executors: list[str], calls: tuple[str, ...]) -> str:
    named, more = executors[:NAMED_MAX], len(executors) - NAMED_MAX
    who = ", ".join(named) + (f" and {more} more" if more > 0 else "")
    return f"{who} call{'s' if len(executors) == 1 else ''} {', '.join(calls) or 'no provider'}"


def _examine_agent(agent: dict[str, Any], there: set[str], tiers: set[str]) -> Iterator[Finding]:
    """Examine the models and tiers that an agent names."""
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


def _examine_variables() -> Iterator[Finding]:
    """Examine the providers that this shell's variables configure; none is called."""
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
        todo = "set it with `wayline models add`: until then a job with a budget cannot use them"
        yield note(ABOUT, f"these models have no price: {unknown}", todo)


def _empty_catalogue() -> Finding:
    todo = "add yours with `wayline models add`, and name it in an agent: docs/models.md"
    return note(ABOUT, "the catalogue has no model of the configured providers", todo)


def _keyless(keyed: bool) -> str:
    return "" if keyed else ", without a key"


def _variables(providers: set[str]) -> str:
    return _list({VARIABLES.get(name, f"what configures {name}") for name in providers})


def _list(names: set[str]) -> str:
    return ", ".join(sorted(names))
