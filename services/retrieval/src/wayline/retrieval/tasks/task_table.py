"""Tasks and their dependencies in Postgres: stored once a job, found by name and by words."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import TYPE_CHECKING

from wayline.contracts.task_graphs import (
    EDGES_ASKED_MAX,
    TASKS_ASKED_MAX,
    GraphEdge,
    GraphTask,
    QueryTaskGraph,
    SaveTaskGraph,
    TaskGraph,
    TaskGraphSaved,
)
from wayline.planning import telling, words
from wayline.retrieval.storable import storable
from wayline.store import Record, Store
from wayline.store.queries import Queries

if TYPE_CHECKING:
    from wayline.store.store import Connection

WORDS_MAX = 40
"""Of a name or of what is asked for, by which tasks are found."""
UNTRUSTED = {False: "trusted", True: "untrusted"}


class TaskTable:
    """One row a task, one a dependency."""

    def __init__(self, store: Store, *, tasks_max: int, edges_max: int) -> None:
        self._store = store
        self._tasks_max = tasks_max
        self._edges_max = edges_max
        self._sql = Queries.load(files(__package__ or "").joinpath("queries.sql"))

    async def save(self, asked: SaveTaskGraph) -> TaskGraphSaved:
        """Store what a job planned, unless that is done; the tenant's oldest tasks beyond its share give way."""
        names = {task_key(name): name for name in _names(asked) if task_key(name)}
        edges = {(task_key(one.task), task_key(one.needs)): one for one in asked.edges}
        edges = {key: one for key, one in edges.items() if key[0] != key[1] and names.keys() >= set(key)}
        async with self._store.tenant(asked.tenant) as conn:
            await conn.execute(self._sql.lock_graph, asked.tenant)
            begun = await conn.execute(self._sql.begin_job, asked.tenant, asked.job_id)
            if begun.endswith(" 0"):
                return TaskGraphSaved(new=False, tasks=len(names), edges=len(edges))
            await self._put(conn, asked, names, edges)
            await conn.execute(self._sql.drop_oldest_tasks, asked.tenant, self._tasks_max)
            await conn.execute(self._sql.drop_oldest_edges, asked.tenant, self._edges_max)
            await conn.execute(self._sql.forget_old_jobs, asked.tenant)
        return TaskGraphSaved(new=True, tasks=len(names), edges=len(edges))

    async def _put(
        self,
        conn: Connection,
        asked: SaveTaskGraph,
        names: dict[str, str],
        edges: dict[tuple[str, str], GraphEdge],
    ) -> None:
        trust = UNTRUSTED[asked.untrusted]
        keys = sorted(names)
        shown = [storable(names[key]) for key in keys]
        said = [" ".join(words_of(names[key])) for key in keys]
        read = [storable(one) for one in asked.document_ids]
        await conn.execute(self._sql.put_tasks, asked.tenant, keys, shown, said, asked.job_id, trust, read)
        pairs = sorted(edges)
        found = [edges[pair] for pair in pairs]
        await conn.execute(
            self._sql.put_edges,
            asked.tenant,
            [task for task, _ in pairs],
            [needs for _, needs in pairs],
            [one.weight for one in found],
            [storable(one.kind) for one in found],
            [storable(one.quote) for one in found],
            [storable(one.document_id) for one in found],
            asked.job_id,
            trust,
        )

    async def query(self, asked: QueryTaskGraph) -> TaskGraph:
        """Return the tasks that are asked for and what is around them."""
        keys = [key for key in map(task_key, asked.names) if key]
        said, names = words_of(asked.text), list(asked.audience or ())
        async with self._store.tenant(asked.tenant) as conn:
            if keys or said:
                rows = await conn.fetch(
                    self._told(self._sql.find_tasks), asked.tenant, names, keys, said, asked.limit + 1
                )
            elif asked.names or asked.text:
                rows = []
            else:
                rows = await conn.fetch(self._told(self._sql.newest_tasks), asked.tenant, names, asked.limit + 1)
            cut = len(rows) > asked.limit
            around = {row["task_key"]: None for row in rows[: asked.limit]}
            edges, more = await self._edges(conn, asked, around)
            tasks = await conn.fetch(self._told(self._sql.read_tasks), asked.tenant, names, list(around))
            total = await conn.fetchval(self._told(self._sql.count_tasks), asked.tenant, names)
        shown = {row["task_key"]: row["name"] for row in tasks}
        return TaskGraph(
            tasks=tuple(map(_task, tasks)),
            edges=tuple(_edge(row, shown) for row in edges if {row["task_key"], row["needs_key"]} <= shown.keys()),
            known_tasks=total,
            cut=cut or more,
        )

    def _told(self, statement: str) -> str:
        return statement.replace("{may_be_told}", self._sql.may_be_told)

    async def _edges(
        self, conn: Connection, asked: QueryTaskGraph, around: dict[str, None]
    ) -> tuple[list[Record], bool]:
        """Return the dependencies around tasks, and add the tasks that they lead to; the surest first."""
        found: dict[tuple[str, str], Record] = {}
        names = list(asked.audience or ())
        for _ in range(asked.depth):
            before = len(around)
            rows = await conn.fetch(self._sql.edges_at, asked.tenant, list(around), EDGES_ASKED_MAX + 1, names)
            found |= {(row["task_key"], row["needs_key"]): row for row in rows[:EDGES_ASKED_MAX]}
            for one in (key for row in rows for key in (row["task_key"], row["needs_key"])):
                if len(around) < TASKS_ASKED_MAX:
                    around.setdefault(one)
            if len(rows) > EDGES_ASKED_MAX or len(around) >= TASKS_ASKED_MAX:
                return list(found.values())[:EDGES_ASKED_MAX], True
            if len(around) == before:
                break
        return list(found.values())[:EDGES_ASKED_MAX], len(found) > EDGES_ASKED_MAX


def task_key(name: str) -> str:
    """Return what a task is known by: the words of its name, whatever their case, accents and signs."""
    return storable(" ".join(word.text for word in words(name[:300])))


def words_of(text: str) -> list[str]:
    """Return the words by which tasks are found."""
    return [storable(one) for one in list(dict.fromkeys(telling(words(text))))[:WORDS_MAX]]


def _names(asked: SaveTaskGraph) -> Sequence[str]:
    return [task.name for task in asked.tasks]


def _task(row: Record) -> GraphTask:
    untrusted = row["trust"] == UNTRUSTED[True]
    return GraphTask(name=row["name"], source_job=row["source_job"], seen_at=row["seen_at"], untrusted=untrusted)


def _edge(row: Record, names: dict[str, str]) -> GraphEdge:
    fields = {name: row[name] for name in ("kind", "quote", "document_id", "source_job", "jobs")}
    return GraphEdge(
        task=names[row["task_key"]],
        needs=names[row["needs_key"]],
        weight=round(row["weight"], 3),
        untrusted=row["trust"] == UNTRUSTED[True],
        **fields,
    )
