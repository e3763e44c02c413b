"""Keywords for arrays."""

from __future__ import annotations

from typing import Any

from wayline.schemas.keywords.parts import Make, Part
from wayline.schemas.keywords.values import canonical
from wayline.schemas.nodes import Check, Evaluated, Node, Run
from wayline.schemas.problems import says


def _items(part: Part) -> Check:
    if isinstance(part.value, list):
        # As drafts before 2020-12 have it: one schema for each place.
        return _places([part.node(one, number) for number, one in enumerate(part.value)])
    before = part.schema.get("prefixItems")
    return _rest(part.node(part.value), after=len(before) if isinstance(before, list) else 0)


def _prefix_items(part: Part) -> Check:
    return _places(part.nodes())


def _additional_items(part: Part) -> Check | None:
    before = part.schema.get("items")
    return _rest(part.node(part.value), after=len(before)) if isinstance(before, list) else None


def _places(nodes: list[Node]) -> Check:
    def check(value: Any, run: Run, seen: Evaluated | None) -> bool:
        if not isinstance(value, list):
            return True
        if seen is not None:
            seen.items.update(range(min(len(nodes), len(value))))
        return _each(((number, node, value[number]) for number, node in enumerate(nodes[: len(value)])), run)

    return check


def _rest(node: Node, *, after: int) -> Check:
    def check(value: Any, run: Run, seen: Evaluated | None) -> bool:
        if not isinstance(value, list):
            return True
        if seen is not None:
            run.budget.spend(len(value))
            seen.items.update(range(len(value)))
        return _each(((number, node, value[number]) for number in range(after, len(value))), run)

    return check


def _each(compared: Any, run: Run) -> bool:
    fine = True
    for number, node, item in compared:
        run.path.append(number)
        fits = node.check(item, run)
        run.path.pop()
        if not fits:
            fine = False
            if run.enough:
                break
    return fine


def _contains(part: Part) -> Check:
    node = part.node(part.value)
    least, most = part.schema.get("minContains", 1), part.schema.get("maxContains")
    too_few = says(f"does not contain {least} items that match the given schema")
    too_many = says(f"contains more than {most} items that match the given schema")

    def check(value: Any, run: Run, seen: Evaluated | None) -> bool:
        if not isinstance(value, list):
            return True
        found = [number for number, item in enumerate(value) if node.fits(item, run)]
        if seen is not None:
            seen.items.update(found)
        if len(found) < least:
            return run.fail(too_few, value)
        if most is not None and len(found) > most:
            return run.fail(too_many, value)
        return True

    return check


def _count(part: Part) -> None:
    part.count()


def _min_items(part: Part) -> Check:
    least = part.count()
    short = says("should be non-empty" if least == 1 else "is too short")

    def check(value: Any, run: Run, seen: Evaluated | None) -> bool:
        return not isinstance(value, list) or len(value) >= least or run.fail(short, value)

    return check


def _max_items(part: Part) -> Check:
    most = part.count()
    long = says("is expected to be empty" if most == 0 else "is too long")

    def check(value: Any, run: Run, seen: Evaluated | None) -> bool:
        return not isinstance(value, list) or len(value) <= most or run.fail(long, value)

    return check


def _unique_items(part: Part) -> Check | None:
    if not isinstance(part.value, bool):
        raise part.wrong("true or false")
    if not part.value:
        return None
    repeats = says("has non-unique elements")

    def check(value: Any, run: Run, seen: Evaluated | None) -> bool:
        if not isinstance(value, list) or len(value) == len({canonical(one, run.budget) for one in value}):
            return True
        return run.fail(repeats, value)

    return check


KEYWORDS: dict[str, Make] = {
    "minItems": _min_items,
    "maxItems": _max_items,
    "prefixItems": _prefix_items,
    "items": _items,
    "additionalItems": _additional_items,
    "minContains": _count,
    "maxContains": _count,
    "contains": _contains,
    "uniqueItems": _unique_items,
}
