"""One name, one idea: no class of these services is called as one of a library that it may import."""

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
    trees = (ast.parse(path.read_text()) for path in (MEMBERS[name] / "src").rglob("*.py"))
    return {node.name for tree in trees for node in tree.body if isinstance(node, ast.ClassDef) and node.name[0] != "_"}


@pytest.mark.parametrize("service", SERVICES)
def test_a_class_has_no_namesake_in_an_imported_member(service: str):
    own = classes(f"wayline-{service}") - OF_EVERY_SERVICE

    shared = {other: own & classes(other) for other in imported(f"wayline-{service}")}

    assert {other: names for other, names in shared.items() if names} == {}


def test_a_namesake_is_found():
    assert "wayline-contracts" in imported("wayline-gateway")
    assert "Claims" in classes("wayline-chassis") and "Claims" not in classes("wayline-executor")
