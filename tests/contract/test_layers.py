"""Every service holds its layers by an import contract, and every library has its place among the others."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
OF_THEIR_OWN = {"executor", "standalone"}
"""Services whose layers are not those of the others: the executor runs tickets, standalone is a command."""


def packages(folder: str) -> set[str]:
    """Return the names of the packages below `wayline` in a folder of the workspace."""
    found = (ROOT / folder).glob("*/src/wayline/*/__init__.py")
    return {path.parent.name for path in found}


def layers_of(name: str) -> list[list[str]]:
    """Return the layers of a service, the highest first. Raises KeyError."""
    container = [f"wayline.{name}"]
    found = {tuple(one["containers"]): one for one in CONTRACTS if one["type"] == "layers" and "containers" in one}
    return [layer.replace("|", " ").replace(":", " ").split() for layer in found[tuple(container)]["layers"]]


def without_layers(services: Iterable[str], contracts: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return the services of which no contract places every file."""
    held = {
        container.removeprefix("wayline.")
        for contract in contracts
        if contract["type"] == "layers" and contract.get("exhaustive")
        for container in contract.get("containers", ())
    }
    return set(services) - held


def test_every_service_has_a_contract_that_places_all_of_its_files():
    assert without_layers(packages("services") - OF_THEIR_OWN, CONTRACTS) == set()


def test_a_new_service_without_a_contract_is_named():
    assert without_layers({*packages("services") - OF_THEIR_OWN, "billing"}, CONTRACTS) == {"billing"}


@pytest.mark.parametrize("name", sorted(packages("services") - OF_THEIR_OWN))
def test_wiring_stands_above_handlers_adapters_ideas_and_settings(name: str):
    layers = layers_of(name)
    level = {module: number for number, layer in enumerate(layers) for module in layer}

    assert layers[0] == ["__main__"]
    assert "app" in layers[1]
    ideas = level.keys() - {"__main__", "handlers", "adapters", "errors", "settings"} - set(layers[level["handlers"]])
    below_app = {module for module in ideas if level[module] > level["app"]} - {"application"}
    assert level["app"] < level["handlers"] <= level["adapters"]
    assert all(level["adapters"] < level[module] for module in below_app)
    assert level["settings"] == len(layers) - 1


def test_every_library_has_its_place_among_the_others():
    layers = next(one["layers"] for one in CONTRACTS if one["name"].startswith("Libraries stand on each other"))
    placed = {module.strip().removeprefix("wayline.") for layer in layers for module in layer.split("|")}

    assert packages("libs") | packages("services") == placed
