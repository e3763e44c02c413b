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
    """Yield each function that keeps a caught error, with the variable, unless a `finally` around it deletes it."""
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, Function):
            yield from ((function.name, name) for name in kept(function, frozenset()))


def kept(part: ast.AST, deleted: frozenset[str], error: str | None = None) -> Iterator[str]:
    """Yield the variables in which a part of a function keeps the error of the handler that it is in."""
    if isinstance(part, ast.Try):
        ends = [node for statement in part.finalbody for node in ast.walk(statement) if isinstance(node, ast.Delete)]
        deleted |= {name.id for node in ends for name in names(*node.targets)}
    if isinstance(part, ast.ExceptHandler):
        error = part.name or error
    if isinstance(part, ast.Assign) and error is not None and is_kept(part.value, error):
        yield from (name.id for name in names(*part.targets) if name.id not in deleted)
    for child in ast.iter_child_nodes(part):
        yield from kept(child, deleted, error)


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
        try:
            return answer()
        except OSError as error:
            last = {}
        {}
    finally:
        {}
"""


@pytest.mark.parametrize(
    ("value", "then", "at_end", "expected"),
    [
        ("error", "raise last", "pass", [("ask", "last")]),
        ("error if known else Bug()", "raise last", "pass", [("ask", "last")]),
        ("error", "del last", "pass", [("ask", "last")]),
        ("error", "raise last", "del last", []),
        ("str(error)", "raise OSError(last)", "pass", []),
    ],
    ids=["kept", "perhaps kept", "deleted on one way", "deleted on all ways", "its words"],
)
def test_an_error_that_is_kept_is_found(value: str, then: str, at_end: str, expected: list[tuple[str, str]]):
    assert list(kept_errors(KEEPS.format(value, then, at_end))) == expected


@pytest.mark.parametrize("member", MEMBERS, ids=lambda member: member.name)
def test_no_function_keeps_an_error_for_good(member: Path):
    modules = sorted((member / "src").rglob("*.py"))
    found = [(path.name, *kept) for path in modules for kept in kept_errors(path.read_text())]

    assert modules != []
    assert found == []
