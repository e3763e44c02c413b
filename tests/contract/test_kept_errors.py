"""An error that a function keeps in a variable is deleted there.

It would keep itself, through its traceback and the frame of that function, and with them all that the frames hold,
until Python looks for cycles: services have it do so seldom.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MEMBERS = sorted(path.parent for path in ROOT.glob("*/*/src"))
Function = ast.FunctionDef | ast.AsyncFunctionDef


def kept_errors(source: str) -> Iterator[tuple[str, str]]:
    """Yield each function that keeps an error it has caught and never deletes it, with the variable."""
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, Function):
            continue
        deleted = {
            name.id for node in ast.walk(function) if isinstance(node, ast.Delete) for name in names(*node.targets)
        }
        for handler in ast.walk(function):
            if isinstance(handler, ast.ExceptHandler) and handler.name is not None:
                for node in ast.walk(handler):
                    if isinstance(node, ast.Assign) and is_kept(node.value, handler.name):
                        yield from ((function.name, name.id) for name in names(*node.targets) if name.id not in deleted)


def names(*targets: ast.expr) -> list[ast.Name]:
    return [name for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]


def is_kept(value: ast.expr, error: str) -> bool:
    """Return whether a value is the error, or may be."""
    match value:
        case ast.Name(id=name):
            return name == error
        case ast.IfExp(body=body, orelse=other):
            return is_kept(body, error) or is_kept(other, error)
        case ast.BoolOp(values=several) | ast.Tuple(elts=several) | ast.List(elts=several):
            return any(is_kept(one, error) for one in several)
        case _:
            return False


KEEPS = """
def ask():
    try:
        return answer()
    except OSError as error:
        last = {}
    {}
"""


@pytest.mark.parametrize(
    ("kept", "then", "expected"),
    [
        ("error", "raise last", [("ask", "last")]),
        ("error if known else Bug()", "raise last", [("ask", "last")]),
        ("error", "del last", []),
        ("str(error)", "raise OSError(last)", []),
    ],
)
def test_an_error_that_is_kept_is_found(kept: str, then: str, expected: list[tuple[str, str]]):
    assert list(kept_errors(KEEPS.format(kept, then))) == expected


@pytest.mark.parametrize("member", MEMBERS, ids=lambda member: member.name)
def test_no_function_keeps_an_error_for_good(member: Path):
    modules = sorted((member / "src").rglob("*.py"))
    found = [(path.name, *kept) for path in modules for kept in kept_errors(path.read_text())]

    assert modules != []
    assert found == []
