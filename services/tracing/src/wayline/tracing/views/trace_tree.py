"""The tree of a trace: every span has its place, also when the process that held its parent was killed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from operator import attrgetter
from typing import Any, Literal, TypeAlias

from wayline.contracts.traces import Span
from wayline.telemetry import names

DEPTH_MAX = 64
"""Spans below this depth are shown at it: a tree is read by programs that recurse."""
Source: TypeAlias = Literal["log", "exported", "joined"]
"""Where a span is from: made from a job's log, exported by a service, or of another trace that joins this one."""


@dataclass(slots=True)
class TreeNode:
    """A span as it is stored, and what hangs under it."""

    span_id: str
    parent: str | None
    anchor: str | None
    name: str
    service: str
    kind: str
    start: datetime
    duration_ms: float | None
    status: str
    attributes: dict[str, Any] = field(default_factory=dict)
    links: Sequence[dict[str, Any]] = ()
    events: Sequence[dict[str, Any]] = ()
    usage: dict[str, int] | None = None
    cost_usd: Decimal | None = None
    source: Source = "log"
    children: list[TreeNode] = field(default_factory=list)


def grow(nodes: Sequence[TreeNode], root: TreeNode) -> TreeNode:
    """Hang every node under `root`: under its parent, else under its anchor, else under the root itself."""
    # The first of an id: those made from the log come first, and no stranger's span takes the place of one.
    by_id = {root.span_id: root}
    for node in nodes:
        by_id.setdefault(node.span_id, node)
    for node in by_id.values():
        if node is not root:
            place = by_id.get(node.parent or "") or by_id.get(node.anchor or "") or root
            (root if place is node else place).children.append(node)
    _adopt_circles(by_id, root)
    return root


def missing(nodes: Sequence[TreeNode], root: TreeNode) -> int:
    """Count the spans that a grown tree shows to be absent: parents that are named, the registry's of tool calls."""
    ids = {root.span_id, *(node.span_id for node in nodes)}
    # The caller of a tenant's own program may send its spans elsewhere.
    parents = {node.parent for node in nodes if node.parent is not None and node.source != "joined"} - ids
    return len(parents) + sum(not node.children for node in nodes if _was_asked_for(node))


def _was_asked_for(node: TreeNode) -> bool:
    """Return whether the span is a tool call that the registry answered, and left a span of its own for."""
    # The executor's own tools have no effect: nobody else was asked.
    return node.service == "executor" and names.EFFECT in node.attributes and node.status == "ok"


def _adopt_circles(by_id: dict[str, TreeNode], root: TreeNode) -> None:
    """Cut circles of spans that name each other as parents, and hang them under the root."""
    reached = _reached(root)
    for node in by_id.values():
        if node.span_id in reached:
            continue
        parent = by_id.get(node.parent or "") or by_id.get(node.anchor or "")
        if parent is not None and node in parent.children:
            parent.children.remove(node)
        root.children.append(node)
        reached |= _reached(node)


def _reached(start: TreeNode) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        node = waiting.pop()
        if node.span_id not in found:
            found.add(node.span_id)
            waiting.extend(node.children)
    return found


def size(root: TreeNode) -> int:
    """Count the spans of a grown tree."""
    return len(_reached(root))


def jobs_below(root: TreeNode) -> set[str]:
    """Return the jobs whose logs made spans of a grown tree: what others say of a job makes none of its cost ours."""
    found: set[str] = set()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.source == "log" and (job_id := node.attributes.get(names.JOB)):
            found.add(job_id)
        waiting.extend(node.children)
    return found


def first_of(nodes: Sequence[TreeNode]) -> TreeNode:
    """Return the root of a trace that is no job's: its earliest span without a parent."""
    ids = {node.span_id for node in nodes}
    tops = [node for node in nodes if node.parent is None or node.parent not in ids]
    return min(tops or nodes, key=lambda node: (node.parent is not None, node.start))


def shown(root: TreeNode, trace_id: str) -> Span:
    """Return a grown tree as it is answered: each span names the parent it hangs under, children are oldest first."""
    # Validated in one go: for thousands of spans that takes half the time of making each for itself.
    return Span.model_validate(_shown(root, trace_id, parent=None, depth=0))


def _shown(node: TreeNode, trace_id: str, *, parent: str | None, depth: int) -> dict[str, Any]:
    below = node.children
    if depth == DEPTH_MAX:
        below = [replace(child, children=[]) for child in _below(node)]
    below.sort(key=_start)
    return {
        "trace_id": trace_id,
        "span_id": node.span_id,
        "parent_span_id": parent,
        "name": node.name,
        "service": node.service,
        "kind": node.kind,
        "start": node.start,
        "duration_ms": node.duration_ms,
        "status": node.status,
        "attributes": node.attributes,
        "links": node.links,
        "events": node.events,
        "usage": node.usage,
        "cost_usd": node.cost_usd,
        "children": [_shown(child, trace_id, parent=node.span_id, depth=depth + 1) for child in below],
    }


_start = attrgetter("start")


def _below(node: TreeNode) -> list[TreeNode]:
    found: list[TreeNode] = []
    waiting = list(node.children)
    while waiting:
        child = waiting.pop()
        found.append(child)
        waiting.extend(child.children)
    return found
