"""Strongly connected parts of a graph, and ways through it; nothing here calls itself, so no graph is too deep."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence

Graph = Mapping[str, Sequence[str]]
"""What each node leads to; every node is a key."""


def components(graph: Graph) -> list[list[str]]:
    """Return the strongly connected parts by Tarjan's algorithm, each after those that it leads to."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    held: list[str] = []
    is_held: set[str] = set()
    found: list[list[str]] = []
    for root in graph:
        if root in index:
            continue
        path = [(root, iter(graph[root]))]
        index[root] = low[root] = len(index)
        held.append(root)
        is_held.add(root)
        while path:
            node, following = path[-1]
            deeper = None
            for one in following:
                if one not in index:
                    deeper = one
                    break
                if one in is_held:
                    low[node] = min(low[node], index[one])
            if deeper is not None:
                index[deeper] = low[deeper] = len(index)
                held.append(deeper)
                is_held.add(deeper)
                path.append((deeper, iter(graph[deeper])))
                continue
            path.pop()
            if path:
                low[path[-1][0]] = min(low[path[-1][0]], low[node])
            if low[node] == index[node]:
                found.append(_taken(held, is_held, node))
    return found


def _taken(held: list[str], is_held: set[str], root: str) -> list[str]:
    part = list[str]()
    while not part or part[-1] != root:
        part.append(held.pop())
        is_held.discard(part[-1])
    return part


def path_between(graph: Graph, start: str, end: str) -> list[str] | None:
    """Return a shortest way from one node to another, both included; None: there is none."""
    came: dict[str, str | None] = {start: None}
    waiting = deque([start])
    while waiting:
        node = waiting.popleft()
        if node == end:
            return _back(came, end)
        for one in graph[node]:
            if one not in came:
                came[one] = node
                waiting.append(one)
    return None


def _back(came: Mapping[str, str | None], end: str) -> list[str]:
    way, node = list[str](), end
    while node is not None:
        way.append(node)
        node = came[node]
    return way[::-1]


def inside(graph: Graph, part: Collection[str]) -> dict[str, list[str]]:
    """Return the graph of a part alone."""
    members = set(part)
    return {node: [one for one in graph[node] if one in members] for node in part}


def back_edges(graph: Graph) -> list[tuple[str, str]]:
    """Return edges without which a graph has no cycle: those that lead back on the way of one walk through it."""
    state: dict[str, int] = {}
    found: list[tuple[str, str]] = []
    for root in graph:
        if root in state:
            continue
        state[root] = 1
        path = [(root, iter(graph[root]))]
        while path:
            node, following = path[-1]
            deeper = None
            for one in following:
                if state.get(one) == 1:
                    found.append((node, one))
                elif one not in state:
                    deeper = one
                    break
            if deeper is None:
                state[node] = 2
                path.pop()
                continue
            state[deeper] = 1
            path.append((deeper, iter(graph[deeper])))
    return found
