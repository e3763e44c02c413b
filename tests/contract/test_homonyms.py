"""One name, one idea: no class or module is called as one that it may import."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SERVICES = ("gateway", "router", "standalone", "tracing")
OF_EVERY_SERVICE = {"Settings"}
"""The same idea in each: what is called so everywhere misleads nobody."""

SUBJECTS = (
    "/adapters/",
    "/contracts/",
    "/executor/decide/",
    "/executor/perform/",
    "/gateway/shapes/",
    "/handlers/",
    "/journal/folding/",
    "/simulator/checks/",
    "/simulator/wires/",
    "/standalone/commands/",
    "/standalone/doctor/",
    "/standalone/recorded/",
    "/testkit/",
    "/tracing/projection/",
)
"""Where a module is named by its subject, as others of the same subject in other layers are."""
CONVENTIONAL = {"adapter", "app", "errors", "handlers", "limits", "reply", "request", "settings", "wiring", "__main__"}
"""The same part of each member, room or wire."""
ONE_IDEA = {"documents", "model", "numbers", "routes"}
"""Called alike with reason: the rule and the table of documents; a model's interface and the one on board, the numbers
of JSON read and checked; the routes of a room."""


CLASS = re.compile(r"^class ([A-Za-z]\w*)", re.MULTILINE)


def project(member: Path) -> dict[str, Any]:
    return tomllib.loads((member / "pyproject.toml").read_text())["project"]


MEMBERS = {
    project(path)["name"]: path
    for folder in ("libs", "services")
    for path in (ROOT / folder).iterdir()
    if path.is_dir()
}


def imported(name: str) -> set[str]:
    """Return the members that a member may import, through others too."""
    found, waiting = set[str](), [name]
    while waiting:
        needs = [re.split(r"[<>=\[ ]", need)[0] for need in project(MEMBERS[waiting.pop()])["dependencies"]]
        new = {need for need in needs if need in MEMBERS} - found
        found |= new
        waiting += new
    return found


def classes(name: str) -> set[str]:
    """Return the names of the classes that a member's modules define for others."""
    return {found for path in (MEMBERS[name] / "src").rglob("*.py") for found in CLASS.findall(path.read_text())}


@pytest.mark.parametrize("service", SERVICES)
def test_a_class_has_no_namesake_in_an_imported_member(service: str):
    own = classes(f"wayline-{service}") - OF_EVERY_SERVICE

    shared = {other: own & classes(other) for other in imported(f"wayline-{service}")}

    assert {other: names for other, names in shared.items() if names} == {}


def test_a_namesake_is_found():
    assert "wayline-contracts" in imported("wayline-gateway")
    assert "Claims" in classes("wayline-chassis") and "Claims" not in classes("wayline-executor")


def modules(name: str) -> list[str]:
    """Return the modules of a member that are named by an idea of their own."""
    folder = MEMBERS[name] / "src" / "wayline"
    places = [path.relative_to(folder) for path in folder.rglob("*.py") if path.stem != "__init__"]
    return [
        place.as_posix()
        for place in places
        if not any(part in f"/{place.as_posix()}" for part in SUBJECTS)
        and place.stem not in CONVENTIONAL | ONE_IDEA
        # A package's main module.
        and place.stem != place.parent.name
    ]


@pytest.mark.parametrize("name", sorted(MEMBERS))
def test_a_module_has_no_namesake_that_it_may_import(name: str):
    own, others = modules(name), [place for other in imported(name) for place in modules(other)]

    of_name: dict[str, list[str]] = {Path(place).stem: [] for place in own}
    for place in (*own, *others):
        of_name.get(Path(place).stem, []).append(place)

    assert [places for places in of_name.values() if len(places) > 1] == []


def test_a_module_that_has_a_namesake_is_found():
    assert "chassis/handling/heartbeat.py" in modules("wayline-chassis")
    assert "executor/hold/job_heartbeats.py" in modules("wayline-executor")


def test_no_package_defines_what_is_called_as_one_of_its_modules():
    """Importing the module would put it in the place of the other."""
    doubled = [
        f"{path.relative_to(ROOT)}: {node.name}"
        for member in MEMBERS.values()
        for path in (member / "src").rglob("__init__.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and ((path.parent / f"{node.name}.py").exists() or (path.parent / node.name / "__init__.py").exists())
    ]

    assert doubled == []
