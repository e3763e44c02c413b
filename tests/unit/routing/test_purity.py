"""Routing decides by its arguments alone: a backtest makes a recorded decision again."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[3] / "libs/routing/src/wayline/routing"
SURROUNDINGS = {"asyncio", "datetime", "os", "random", "secrets", "socket", "time", "uuid"}


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: path.stem)
def test_no_file_of_routing_waits_or_reads_its_surroundings(path: Path):
    nodes = list(ast.walk(ast.parse(path.read_text())))
    imported = {name.name for node in nodes if isinstance(node, ast.Import) for name in node.names}
    imported |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}

    assert not {name.split(".")[0] for name in imported} & SURROUNDINGS
    assert not any(isinstance(node, ast.AsyncFunctionDef | ast.Await) for node in nodes)
