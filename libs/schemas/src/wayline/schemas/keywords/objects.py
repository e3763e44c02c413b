"""Keywords for objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wayline.schemas.keywords.parts import NAMES_A_STEP, Make, Part, names_in_both
from wayline.schemas.nodes import Check, Evaluated, Node, Run
from wayline.schemas.patterns import Pattern
from wayline.schemas.problems import says, shown

EXTRAS_SHOWN_MAX = 20


def _required(part: Part) -> Check:
    names = part.names(part.value)
    required = says("is a required property")

    def check(value: Any, run: Run, seen: Evaluated | None) -> bool:
        if not isinstance(value, dict):
            return True
        run.budget.spend(1 + len(names) // NAMES_A_STEP)
        missing = [name for name in names if name not in value]
        for name in missing:
            run.fail(required, name)
        return not missing

    return check


def _properties(part: Part) -> Check:
    nodes = part.named_nodes()

    def check(value: Any, run: Run, seen: Evaluated | None) -> bool:
        if not isinstance(value, dict):
            return True
        fine = True
        for name in names_in_both(value, nodes, run):
            if seen is not None:
                seen.names.add(name)
            if not _inside(name, nodes[name], value[name], run):
                fine = False
                if run.enough:
                    break
        return fine

    return check


def _inside(name: str, node: Node, value: Any, run: Run) -> bool:
    run.path.append(name)
    fits = node.check(value, run)
    run.path.pop()
    return fits


def _patterns(part: Part) -> list[tuple[Pattern | None, str]]:
    """Return the patterns beside a keyword; None is one that is left unchecked."""
    sources = part.schema.get("patternProperties")
    return [(part.pattern(source), source) for source in sources] if isinstance(sources, dict) else []


def _pattern_properties(part: Part) -> Check:
    nodes = part.named_nodes()
    found = [(pattern, nodes[source]) for pattern, source in _patterns(part) if pattern is not None]

    def check(value: Any, run: Run, seen: Evaluated | None) -> bool:
        if not isinstance(value, dict):
            return True
        fine = True
        for pattern, node in found:
            for name, item in value.items():
                if not run.finds(pattern, name):
                    continue
                if seen is not None:
                    seen.names.add(name)
                if not _inside(name, node, item, run):
                    fine = False
                    if run.enough:
                        return False
        return fine

    return check


def _additional_properties(part: Part) -> Check:
    node = part.node(part.value)
    named = part.schema.get("properties")
    known = frozenset(named) if isinstance(named, dict) else frozenset[str]()
    patterns = [pattern for pattern, _ in _patterns(part)]

    def check(value: Any, run: Run, seen: Evaluated | None) -> bool:
        # A name that an unchecked pattern may describe cannot be held against anybody.
        if not isinstance(value, dict) or None in patterns:
            return True
        run.budget.spend(1 + len(value) // NAMES_A_STEP)
        extras = [name for name in value if name not in known and not _described(name, patterns, run)]
        if seen is not None:
            seen.names.update(extras)
        if part.value is False:
            return not extras or run.fail(_not_allowed, extras)
        return all(_inside(name, node, value[name], run) for name in extras)

    return check


def _not_allowed(extras: list[str]) -> str:
    return f"Additional properties are not allowed ({unexpected(extras)})"


def unexpected(extras: list[str]) -> str:
    """Return which properties were not expected."""
    first = ", ".join(shown(name) for name in sorted(extras)[:EXTRAS_SHOWN_MAX])
    return f"{first} {'was' if len(extras) == 1 else 'were'} unexpected"


def _described(name: str, patterns: list[Pattern | None], run: Run) -> bool:
    return any(pattern is not None and run.finds(pattern, name) for pattern in patterns)


def _property_names(part: Part) -> Check:
    node = part.node(part.value)

    def check(value: Any, run: Run, seen: Evaluated | None) -> bool:
        return not isinstance(value, dict) or all(node.check(name, run) for name in value)

    return check


def _min_properties(part: Part) -> Check:
    least = part.count()
    few = says("should be non-empty" if least == 1 else "does not have enough properties")

    def check(value: Any, run: Run, seen: Evaluated | None) -> bool:
        return not isinstance(value, dict) or len(value) >= least or run.fail(few, value)

    return check


def _max_properties(part: Part) -> Check:
    most = part.count()
    many = says("is expected to be empty" if most == 0 else "has too many properties")

    def check(value: Any, run: Run, seen: Evaluated | None) -> bool:
        return not isinstance(value, dict) or len(value) <= most or run.fail(many, value)

    return check


def _dependent_required(part: Part) -> Check:
    if not isinstance(part.value, dict):
        raise part.wrong("an object")
    needed = {name: part.names(one) for name, one in part.value.items()}

    def check(value: Any, run: Run, seen: Evaluated | None) -> bool:
        return needed_are_there(value, needed, run)

    return check


def needed_are_there(value: Any, needed: Mapping[str, list[str]], run: Run) -> bool:
    """Return whether an object has the properties that others of it need."""
    fine = True
    if isinstance(value, dict):
        for name in names_in_both(value, needed, run):
            run.budget.spend(1 + len(needed[name]))
            for missing in [other for other in needed[name] if other not in value]:
                fine = run.fail(says(f"is a dependency of {shown(name)}"), missing)
    return fine


KEYWORDS: dict[str, Make] = {
    "required": _required,
    "minProperties": _min_properties,
    "maxProperties": _max_properties,
    "dependentRequired": _dependent_required,
    "propertyNames": _property_names,
    "properties": _properties,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
}
