"""The room put together: its tables, and which handler receives which request."""

from __future__ import annotations

from typing import Any

from wayline.chassis import Ask, asks
from wayline.contracts.task_graphs import GetDocumentContext, QueryTaskGraph, SaveTaskGraph
from wayline.retrieval.tasks.document_places import DocumentPlaces
from wayline.retrieval.tasks.handlers import TaskHandlers
from wayline.retrieval.tasks.task_table import TaskTable
from wayline.store import Store


def task_asks(store: Store, *, tasks_max: int, edges_max: int, slots: int) -> list[Ask[Any]]:
    """Return the requests about tasks that this service answers."""
    handlers = TaskHandlers(TaskTable(store, tasks_max=tasks_max, edges_max=edges_max), DocumentPlaces(store))
    return [
        asks(SaveTaskGraph, handlers.on_save),
        asks(QueryTaskGraph, handlers.on_query, slots=slots),
        asks(GetDocumentContext, handlers.on_context, slots=slots),
    ]
