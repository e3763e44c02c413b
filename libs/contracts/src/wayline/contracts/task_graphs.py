"""What is known of tasks and of what each needs, across the jobs that planned them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from wayline.contracts.base import Frozen, Request
from wayline.contracts.knowledge import Audience, DocumentId

GRAPH_TASKS_MAX = 1_000
"""Tasks of one plan."""
GRAPH_EDGES_MAX = 2_000
"""Dependencies of one plan."""
GRAPH_DOCUMENTS_MAX = 1_000
"""Documents that one job has read."""
TASK_NAME_MAX_CHARS = 300
QUOTE_MAX_CHARS = 300
TASKS_ASKED_MAX = 200
EDGES_ASKED_MAX = 500
DEPTH_MAX = 3


class GraphEdge(Frozen):
    """That a task needs another one done before it: both by name, for ids are a plan's own."""

    task: str = Field(min_length=1, max_length=TASK_NAME_MAX_CHARS)
    needs: str = Field(min_length=1, max_length=TASK_NAME_MAX_CHARS)
    weight: float = Field(ge=0, le=1, description="How sure it is.")
    kind: str = Field(default="", max_length=32, description="How it was found, such as `name` or `product`.")
    quote: str = Field(default="", max_length=QUOTE_MAX_CHARS, description="The words that say so.")
    document_id: str = Field(default="", max_length=200, description="Whose words they are; empty: a task's own.")
    source_job: str = Field(default="", description="The job that found it last, with this evidence.")
    jobs: int = Field(default=1, ge=1, description="How many jobs found it.")
    untrusted: bool = Field(default=False, description="The job that found it had read the words of strangers.")


class GraphTask(Frozen):
    """A task that some job planned."""

    name: str = Field(min_length=1, max_length=TASK_NAME_MAX_CHARS)
    source_job: str = Field(default="", description="The job that planned it last.")
    seen_at: datetime | None = None
    untrusted: bool = Field(default=False, description="That job had read the words of strangers.")


class TaskGraph(Frozen):
    """A part of a tenant's tasks and of what each needs."""

    tasks: tuple[GraphTask, ...] = ()
    edges: tuple[GraphEdge, ...] = Field(default=(), description="The surest first.")
    known_tasks: int = Field(default=0, description="Tasks that the tenant has in all.")
    cut: bool = Field(default=False, description="Whether there was more than is shown.")


class TaskGraphSaved(Frozen):
    """Whether a job's tasks were stored now, or had been before."""

    new: bool
    tasks: int
    edges: int


class SaveTaskGraph(Request, subject="tasks.save.{tenant}", replies=TaskGraphSaved):
    """Store the tasks that a job planned and what each needs; of one job once, however often this is asked."""

    job_id: str = Field(min_length=1, max_length=64)
    tasks: tuple[GraphTask, ...] = Field(max_length=GRAPH_TASKS_MAX)
    edges: tuple[GraphEdge, ...] = Field(default=(), max_length=GRAPH_EDGES_MAX)
    untrusted: bool = Field(default=False, description="The job had read the words of strangers.")
    document_ids: tuple[Annotated[str, Field(max_length=200)], ...] = Field(
        default=(), max_length=GRAPH_DOCUMENTS_MAX, description="What the job had read: those may be told who find it."
    )


class QueryTaskGraph(Request, subject="tasks.query.{tenant}", replies=TaskGraph):
    """Ask for tasks by name or by words, and for what is around them; without either for the newest."""

    names: tuple[str, ...] = Field(default=(), max_length=GRAPH_TASKS_MAX)
    text: str = Field(default="", max_length=10_000, description="Tasks that share words with it.")
    depth: int = Field(default=1, ge=0, le=DEPTH_MAX, description="How many dependencies away from them.")
    limit: int = Field(default=50, ge=1, le=TASKS_ASKED_MAX, description="Tasks at most to begin with.")
    audience: Audience | None = Field(default=None, description="On whose behalf, as in a search.")


class ContextPassage(Frozen):
    """A passage at its place in a document."""

    chunk_id: str
    position: int
    text: str


class DocumentContext(Frozen):
    """Passages of a document that follow each other."""

    document_id: str
    document: str = Field(description="The document's name.")
    passages: tuple[ContextPassage, ...] = ()
    passages_total: int = 0
    untrusted: bool = Field(default=False, description="It holds the words of strangers.")


class GetDocumentContext(Request, subject="documents.context.{tenant}", replies=DocumentContext):
    """Ask for the passages around one, or from a document's beginning."""

    document_id: DocumentId = Field(
        description="Its id; or its name, where no document has that id and one has that name."
    )
    chunk_id: str | None = Field(default=None, max_length=400, description="None: from the beginning.")
    before: int = Field(default=2, ge=0, le=60)
    after: int = Field(default=4, ge=0, le=60)
    audience: Audience | None = Field(default=None, description="On whose behalf, as in a search.")
