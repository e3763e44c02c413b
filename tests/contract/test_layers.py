"""Every service holds its layers by an import contract, and every library has its place among the others."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
WITHOUT_HANDLERS = {"console", "executor", "notifier", "retrieval", "router", "standalone", "tool_registry"}
"""Services that have no `handlers` beside their ideas: the executor runs tickets; the router, retrieval, the notifier
and the tool registry have a room for each subject with handlers of its own; the console has pages; standalone is a
command."""
UNSORTED_MODULES_MAX = 5
"""How many modules a library may have before a contract has to place them."""


def packages(folder: str) -> set[str]:
    """Return the names of the packages below `wayline` in a folder of the workspace."""
    found = (ROOT / folder).glob("*/src/wayline/*/__init__.py")
    return {path.parent.name for path in found}


def layers_of(name: str) -> list[list[str]]:
    """Return the layers of a service, the highest first. Raises KeyError."""
    container = [f"wayline.{name}"]
    found = {tuple(one["containers"]): one for one in CONTRACTS if one["type"] == "layers" and "containers" in one}
    return [layer.replace("|", " ").replace(":", " ").split() for layer in found[tuple(container)]["layers"]]


def modules_of(library: str) -> set[str]:
    """Return the modules and packages that stand directly in a library."""
    folder = ROOT / "libs" / library / "src/wayline" / library
    files = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    return files | {path.parent.name for path in folder.glob("*/__init__.py")}


def without_layers(packages: Iterable[str], contracts: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return the packages of which no contract places every module."""
    held = {
        container.removeprefix("wayline.")
        for contract in contracts
        if contract["type"] == "layers" and contract.get("exhaustive")
        for container in contract.get("containers", ())
    }
    return set(packages) - held


def test_every_service_has_a_contract_that_places_all_of_its_files():
    assert without_layers(packages("services"), CONTRACTS) == set()


def test_every_library_of_many_modules_has_a_contract_that_places_them():
    many = {library for library in packages("libs") if len(modules_of(library)) > UNSORTED_MODULES_MAX}

    assert without_layers(many, CONTRACTS) == set()


def test_a_new_package_without_a_contract_is_named():
    assert without_layers({*packages("services"), "billing"}, CONTRACTS) == {"billing"}


@pytest.mark.parametrize("name", sorted(packages("services")))
def test_the_entry_point_of_a_service_stands_alone_on_top(name: str):
    assert layers_of(name)[0] == ["__main__"]


@pytest.mark.parametrize("name", sorted(packages("services") - WITHOUT_HANDLERS))
def test_wiring_stands_above_handlers_adapters_ideas_and_settings(name: str):
    layers = layers_of(name)
    level = {module: number for number, layer in enumerate(layers) for module in layer}

    assert "app" in layers[1]
    ideas = level.keys() - {"__main__", "handlers", "adapters", "errors", "settings"} - set(layers[level["handlers"]])
    below_app = {module for module in ideas if level[module] > level["app"]} - {"application"}
    assert level["app"] < level["handlers"] <= level["adapters"]
    assert all(level["adapters"] < level[module] for module in below_app)
    assert level["settings"] == len(layers) - 1


def heard_outside_handlers(source: Path) -> list[str]:
    """Return the `on_*` methods of classes in a file that is no file of handlers."""
    if "handlers" in source.parts or source.stem == "handlers":
        return []
    text = source.read_text()
    if "async def on_" not in text:
        return []
    classes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef)]
    return [
        f"{source.name}: {node.name}"
        for found in classes
        for node in found.body
        if isinstance(node, ast.AsyncFunctionDef) and node.name.startswith("on_")
    ]


def test_messages_are_heard_in_handlers_and_nowhere_else():
    sources = (ROOT / "services").glob("*/src/**/*.py")

    assert [found for source in sources for found in heard_outside_handlers(source)] == []


def test_a_handler_in_an_adapter_is_named(tmp_path: Path):
    source = tmp_path / "adapters" / "tables.py"
    source.parent.mkdir()
    source.write_text("class Tables:\n    async def on_put(self, request): ...\n    async def put(self): ...\n")

    assert heard_outside_handlers(source) == ["tables.py: on_put"]


def test_handlers_stand_on_top_of_each_room_of_the_router():
    rooms = {path.parent.name for path in (ROOT / "services/router/src/wayline/router").glob("*/__init__.py")}
    held = next(one for one in CONTRACTS if one["name"].startswith("Layers of the router's rooms"))

    assert {container.removeprefix("wayline.router.") for container in held["containers"]} == rooms
    assert held["layers"][0] == "(handlers)" and held["exhaustive"]


def rooms_with_handlers(name: str) -> list[str]:
    """Return the rooms of a service that have handlers, as modules of the service."""
    source = ROOT / "services" / name / "src/wayline" / name
    found = {*source.glob("*/handlers.py"), *source.glob("*/handlers/__init__.py")}
    return sorted(path.relative_to(source).parts[0] for path in found)


@pytest.mark.parametrize("room", rooms_with_handlers("tool_registry"))
def test_handlers_stand_on_top_of_their_room_of_the_registry(room: str):
    assert "handlers" in layers_of(f"tool_registry.{room}")[0]


def test_every_library_has_its_place_among_the_others():
    layers = next(one["layers"] for one in CONTRACTS if one["name"].startswith("Libraries stand on each other"))
    placed = {module.strip().removeprefix("wayline.") for layer in layers for module in layer.split("|")}

    assert packages("libs") | packages("services") == placed
