"""Keywords that compare the same value with other schemas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wayline.schemas.keywords.objects import needed_are_there
from wayline.schemas.keywords.parts import Make, Part, names_in_both
from wayline.schemas.nodes import Check, Evaluated, Node, Run
from wayline.schemas.problems import says, shown


def _part_of(node: Node, value: Any, run: Run, seen: Evaluated | None, *, loud: bool = False) -> bool:
    """Return whether a value fits another schema too; what that looks at counts only where it fits."""
    inner = None if seen is None else Evaluated()
    fits = node.check(value, run, inner) if loud else node.fits(value, run, inner)
    if fits and seen is not None and inner is not None:
        run.budget.spend(len(inner.names) + len(inner.items))
        seen.add(inner)
    return fits


def _all_of(part: Part) -> Check:
    nodes = part.nodes()

    def check(value: Any, run: Run, seen: Evaluated | None) -> bool:
        fine = True
        for node in nodes:
            if not _part_of(node, value, run, seen, loud=True):
                fine = False
                if run.enough:
                    break
        return fine

    return check


def _any_of(part: Part) -> Check:
    nodes = part.nodes()
    unlike = says("is not valid under any of the given schemas")

    def check(value: Any, run: Run, seen: Evaluated | None) -> bool:
        found = False
        for node in nodes:
            found = _part_of(node, value, run, seen) or found
            if found and seen is None:
                break
        return found or run.fail(unlike, value)

    return check


def _one_of(part: Part) -> Check:
    nodes = part.nodes()

    def check(value: Any, run: Run, seen: Evaluated | None) -> bool:
        fitting = sum(_part_of(node, value, run, seen) for node in nodes)
        if fitting == 1:
            return True
        how = f"is valid under {fitting} instead of one" if fitting else "is not valid under any"
        return run.fail(says(f"{how} of the given schemas"), value)

    return check


def _not(part: Part) -> Check:
    node = part.node(part.value)
    wrong = says(f"should not be valid under {shown(part.value)}")

    def check(value: Any, run: Run, seen: Evaluated | None) -> bool:
        # What is inside may have keywords that need to know what was looked at there.
        inner = None if seen is None else Evaluated()
        return not node.fits(value, run, inner) or run.fail(wrong, value)

    return check


def _if(part: Part) -> Check:
    condition = part.node(part.value)
    then, otherwise = (
        part.subschema(part.schema[name], f"{part.where.removesuffix('.if')}.{name}") if name in part.schema else None
        for name in ("then", "else")
    )

    def check(value: Any, run: Run, seen: Evaluated | None) -> bool:
        branch = then if _part_of(condition, value, run, seen) else otherwise
        return branch is None or _part_of(branch, value, run, seen, loud=True)

    return check


def _dependent_schemas(part: Part) -> Check:
    return _where_present(part.named_nodes())


def _where_present(nodes: Mapping[str, Node]) -> Check:
    def check(value: Any, run: Run, seen: Evaluated | None) -> bool:
        if not isinstance(value, dict):
            return True
        present = names_in_both(value, nodes, run)
        return all(_part_of(nodes[name], value, run, seen, loud=True) for name in present)

    return check


def _dependencies(part: Part) -> Check:
    """Make the check of a keyword of drafts before 2019-09: names or a schema for each property."""
    if not isinstance(part.value, dict):
        raise part.wrong("an object")
    needed = {name: part.names(one) for name, one in part.value.items() if isinstance(one, list)}
    schemas = _where_present({name: part.node(one, name) for name, one in part.value.items() if name not in needed})

    def check(value: Any, run: Run, seen: Evaluated | None) -> bool:
        return schemas(value, run, seen) & needed_are_there(value, needed, run)

    return check


def _held(part: Part) -> None:
    """Build schemas that nothing is compared with here: one that is none is found all the same."""
    if part.keyword in {"$defs", "definitions"}:
        part.named_nodes()
    else:
        part.node(part.value)


KEYWORDS: dict[str, Make] = {
    **dict.fromkeys(("$defs", "definitions", "then", "else", "contentSchema"), _held),
    "allOf": _all_of,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "not": _not,
    "if": _if,
    "dependentSchemas": _dependent_schemas,
    "dependencies": _dependencies,
}
