"""Which tasks can be done at once, wave by wave; cycles are reported and cut where the evidence is weakest."""

from __future__ import annotations

import heapq
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from wayline.planning.components import back_edges, components, inside, path_between
from wayline.planning.tasks import DEPENDENCIES_MAX, Dependency, Task, distinct, require_few

CYCLES_MAX = 32
"""Cycles that are cut one by one at their weakest dependency; what is left of more is cut in one walk."""
_NUMBERS = re.compile(r"(\d{1,18})")


@dataclass(frozen=True, slots=True)
class Cycle:
    """Tasks that need each other in a circle, and the dependency that was left out."""

    tasks: tuple[str, ...]
    """Each needs the one behind it, the last one the first."""
    cut: Dependency


@dataclass(frozen=True, slots=True)
class Waves:
    """The order of work."""

    waves: tuple[tuple[str, ...], ...]
    """Tasks whose needs are all in earlier waves."""
    dependencies: tuple[Dependency, ...]
    """Those that the waves keep to."""
    cycles: tuple[Cycle, ...] = ()


def waves(tasks: Collection[Task], dependencies: Iterable[Dependency]) -> Waves:
    """Return tasks in waves: each as early as its needs allow, in a wave by priority, then by id.

    Dependencies of tasks that are not there count for nothing; of several between two tasks the strongest does.
    Raises TooManyTasks.
    """
    require_few(tasks)
    known = distinct(tasks)
    edges = strongest(one for one in dependencies if one.task in known and one.needs in known)
    kept, cycles = _without_cycles(known, edges)
    layer = _layers(known, kept)
    ordered: list[list[str]] = [[] for _ in range(max(layer.values(), default=-1) + 1)]
    for task in sorted(known.values(), key=urgency):
        ordered[layer[task.id]].append(task.id)
    return Waves(tuple(tuple(wave) for wave in ordered), tuple(kept.values()), tuple(cycles))


def strongest(dependencies: Iterable[Dependency], *, most: int = DEPENDENCIES_MAX) -> list[Dependency]:
    """Return the strongest dependency between any two tasks, strongest first, and none of a task on itself."""
    best: dict[tuple[str, str], Dependency] = {}
    for one in dependencies:
        before = best.get((one.task, one.needs))
        if one.task != one.needs and (before is None or one.weight > before.weight):
            best[one.task, one.needs] = one
    place = {one: at for at, one in enumerate(sorted({end for pair in best for end in pair}, key=_by_id))}
    return sorted(best.values(), key=lambda one: (-one.weight, place[one.task], place[one.needs]))[:most]


def prioritized(tasks: Collection[Task], found: Waves, *, order: Sequence[str] = ()) -> list[str]:
    """Return all tasks, each behind its needs, otherwise as `order` says; then by how much work waits for them."""
    known = distinct(tasks)
    wanted = {one: at for at, one in reversed(list(enumerate(order)))}
    followers, open_needs = _followers(known, found.dependencies)
    height = _heights(found, followers)

    def rank(one: str) -> tuple[object, ...]:
        return (wanted.get(one, len(order)), -height[one], *urgency(known[one]))

    ready = [(rank(one), one) for one in known if not open_needs[one]]
    heapq.heapify(ready)
    done: list[str] = []
    while ready:
        _, one = heapq.heappop(ready)
        done.append(one)
        for follower in followers[one]:
            open_needs[follower] -= 1
            if not open_needs[follower]:
                heapq.heappush(ready, (rank(follower), follower))
    return done


def urgency(task: Task) -> tuple[bool, float, tuple[tuple[bool, int, str], ...], str]:
    """Return what tasks are sorted by that can be done at once."""
    return (task.priority is None, task.priority or 0.0, natural(task.id), task.id)


def _by_id(one: str) -> tuple[tuple[tuple[bool, int, str], ...], str]:
    return natural(one), one


def natural(text: str) -> tuple[tuple[bool, int, str], ...]:
    """Return what sorts `T2` before `T10`."""
    parts = _NUMBERS.split(text)
    return tuple((not part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in parts if part)


def _without_cycles(
    known: Mapping[str, Task], edges: Sequence[Dependency]
) -> tuple[dict[tuple[str, str], Dependency], list[Cycle]]:
    """Cut the weakest dependency of the cycles until there are none; put back what was cut in vain."""
    kept, nodes = {(one.task, one.needs): one for one in edges}, sorted(known, key=_by_id)
    # They come strongest first, and of two that are as strong always in the same order.
    place = {edge: at for at, edge in enumerate(kept)}
    cycles: list[Cycle] = []
    graph = _graph(nodes, kept)
    waiting = [inside(graph, part) for part in components(graph) if len(part) > 1]
    while waiting:
        part = waiting.pop()
        if len(cycles) >= CYCLES_MAX:
            for task, needs in back_edges({one: sorted(part[one], key=lambda to: place[one, to]) for one in part}):
                cycles.append(Cycle((task, needs), kept.pop((task, needs))))
            continue
        weakest = kept.pop(max(((task, needs) for task in part for needs in part[task]), key=place.__getitem__))
        way = path_between(part, weakest.needs, weakest.task)
        assert way is not None, "an edge inside of a strongly connected part is on a cycle"
        cycles.append(Cycle((weakest.task, *way[:-1]), weakest))
        rest = {node: [one for one in part[node] if (node, one) in kept] for node in part}
        waiting += [inside(rest, smaller) for smaller in components(rest) if len(smaller) > 1]
    return _put_back(nodes, kept, cycles)


def _put_back(
    nodes: Sequence[str], kept: dict[tuple[str, str], Dependency], cycles: Sequence[Cycle]
) -> tuple[dict[tuple[str, str], Dependency], list[Cycle]]:
    """Put back, the strongest first, what closes no cycle any more once the others are cut."""
    final: list[Cycle] = []
    for number, cycle in enumerate(sorted(cycles, key=lambda one: -one.cut.weight)):
        cut = cycle.cut
        if number < CYCLES_MAX and path_between(_graph(nodes, kept), cut.needs, cut.task) is None:
            kept[cut.task, cut.needs] = cut
        else:
            final.append(cycle)
    return kept, final


def _graph(nodes: Iterable[str], kept: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    graph: dict[str, list[str]] = {one: [] for one in nodes}
    for task, needs in kept:
        graph[task].append(needs)
    return graph


def _layers(known: Mapping[str, Task], kept: Mapping[tuple[str, str], Dependency]) -> dict[str, int]:
    """Return how many tasks there are at most one behind the other before each."""
    graph = _graph(known, kept)
    layer: dict[str, int] = {}
    for part in components(graph):
        # Of a graph without cycles each part is one task, and comes after all that it needs.
        (task,) = part
        layer[task] = max((layer[needs] + 1 for needs in graph[task]), default=0)
    return layer


def _followers(
    known: Mapping[str, Task], dependencies: Iterable[Dependency]
) -> tuple[dict[str, list[str]], dict[str, int]]:
    followers: dict[str, list[str]] = {one: [] for one in known}
    open_needs = dict.fromkeys(known, 0)
    for one in dependencies:
        followers[one.needs].append(one.task)
        open_needs[one.task] += 1
    return followers, open_needs


def _heights(found: Waves, followers: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Return how many tasks wait at most one behind the other for each."""
    height: dict[str, int] = {}
    for wave in reversed(found.waves):
        for one in wave:
            height[one] = max((height[follower] + 1 for follower in followers[one]), default=0)
    return height
