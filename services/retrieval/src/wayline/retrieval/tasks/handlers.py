"""Answers requests about tasks, and about the places of passages."""

from __future__ import annotations

from wayline.contracts.errors import NotFound
from wayline.contracts.task_graphs import (
    DocumentContext,
    GetDocumentContext,
    QueryTaskGraph,
    SaveTaskGraph,
    TaskGraph,
    TaskGraphSaved,
)
from wayline.retrieval.tasks.document_places import DocumentPlaces
from wayline.retrieval.tasks.task_table import TaskTable


class TaskHandlers:
    """One coroutine per message heard."""

    def __init__(self, table: TaskTable, places: DocumentPlaces) -> None:
        self._table = table
        self._places = places

    async def on_save(self, asked: SaveTaskGraph) -> TaskGraphSaved:
        """Store what a job planned, once."""
        return await self._table.save(asked)

    async def on_query(self, asked: QueryTaskGraph) -> TaskGraph:
        """Return tasks and what is around them."""
        return await self._table.query(asked)

    async def on_context(self, asked: GetDocumentContext) -> DocumentContext:
        """Return the passages around one. Raises NotFound."""
        found = await self._places.around(asked)
        if found is None:
            raise NotFound("passage" if asked.chunk_id else "document", asked.chunk_id or asked.document_id)
        return found
