"""The SDK can be installed outside of this repository: from two wheels, with no more than they say that they need."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).with_name("uv")
IMPORT = """
import sys, wayline.sdk, wayline.sdk.testing
print(*sorted({module.__spec__.origin for name, module in sys.modules.items() if name.startswith("wayline.")
               and module.__spec__ and module.__spec__.origin}), sep="\\n")
"""


WITH_THEIR_LIBRARY = frozenset({"wayline", "pydantic_core"})


def plain(distribution: str) -> str:
    """Return a distribution's name as it is written in lists of dependencies."""
    return re.sub(r"[_.]", "-", distribution.lower())


def imported(member: Path) -> Iterator[str]:
    """Yield the names of the modules of others that a member imports."""
    for path in member.glob("src/**/*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield node.module


@pytest.mark.parametrize("member", ["contracts", "sdk"])
def test_a_wheel_names_all_that_it_imports(member: str):
    needed = tomllib.loads((ROOT / "libs" / member / "pyproject.toml").read_text())["project"]["dependencies"]
    named = {re.split(r"[\[<>=]", one)[0] for one in needed}
    dists = packages_distributions()
    roots = {name.partition(".")[0] for name in imported(ROOT / "libs" / member)} - sys.stdlib_module_names
    unnamed = {root for root in roots - WITH_THEIR_LIBRARY if named.isdisjoint(plain(one) for one in dists[root])}

    assert unnamed == set()


@pytest.mark.slow
def test_the_sdk_is_installed_from_its_wheels_alone(tmp_path: Path):
    made = ["make", "-s", "-o", ".venv/.ready", "wheels", f"WHEELS={tmp_path}", "UV_OFFLINE=1"]
    subprocess.run(made, cwd=ROOT, check=True, capture_output=True)
    wheels = sorted(tmp_path.glob("*.whl"))
    install = [UV, "pip", "install", "--offline", "--no-deps", "--target", tmp_path / "site", *wheels]
    subprocess.run(install, check=True, capture_output=True)

    ran = subprocess.run(
        [sys.executable, "-c", IMPORT],
        env={"PYTHONPATH": str(tmp_path / "site")},
        capture_output=True,
        text=True,
        check=True,
    )

    assert [wheel.name.partition("-")[0] for wheel in wheels] == ["wayline_contracts", "wayline_sdk"]
    assert {Path(origin).is_relative_to(tmp_path) for origin in ran.stdout.split()} == {True}
