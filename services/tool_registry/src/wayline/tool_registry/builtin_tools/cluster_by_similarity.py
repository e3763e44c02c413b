"""The built-in tool `cluster_by_similarity`."""

# No `from __future__ import annotations`: the MCP library evaluates the tools' annotations where it finds them.

import asyncio
from base64 import b64decode
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any

from pydantic import Field

from wayline.contracts.errors import Reject, Retry
from wayline.contracts.knowledge import EMBEDDED_AT_ONCE_MAX, EmbedTexts
from wayline.planning import (
    SIMILARITY_MIN,
    WORDS_SIMILARITY_MIN,
    Task,
    cluster_by_similarity,
    label,
    word_vectors,
)
from wayline.tool_registry.builtin_tools.call_meta import tenant_of_call
from wayline.tool_registry.builtin_tools.planning_tools import (
    GivenTasks,
    PlanningTools,
    json_result,
    named_tasks,
    tasks_of,
)

EMBEDDED_MAX = 256
"""Tasks whose meaning is compared; of more the words are."""
EMBEDDED_CHARS = 500
REQUESTS_AT_ONCE_MAX = 4


def cluster_by_similarity_tool(planning: PlanningTools) -> Callable[..., Awaitable[Any]]:
    """Return the tool, comparing by what embeds texts, else by their words."""

    async def cluster_tasks(
        tasks: Annotated[GivenTasks, Field(min_length=1, description="What to group.")],
        similarity_min: Annotated[
            float | None,
            Field(ge=0, le=1, description="How alike members are on average; left out: what suits the comparison."),
        ] = None,
    ) -> Any:
        """Group tasks, or any other texts, that are about the same thing; the same groups for the same texts."""
        tenant, known = tenant_of_call(), tasks_of(tasks)
        vectors, model = await _embedded(planning, tenant, [_said(one) for one in known])
        least = similarity_min if similarity_min is not None else SIMILARITY_MIN if model else WORDS_SIMILARITY_MIN
        clusters = await planning.compute(tenant, _clustered, known, vectors, least)
        compared: dict[str, Any] = {"by": "meaning", "model": model} if model else {"by": "words"}
        return json_result({"tasks": named_tasks(known), "clusters": clusters, **compared, "similarity_min": least})

    cluster_tasks.__name__ = "cluster_by_similarity"
    return cluster_tasks


def _said(one: Task) -> str:
    return f"{one.name}. {one.text}"[:EMBEDDED_CHARS]


async def _embedded(planning: PlanningTools, tenant: str, texts: Sequence[str]) -> tuple[list[bytes], str | None]:
    """Return vectors and their model; nothing where the installation compares words, or there is no embedding now."""
    if len(texts) > EMBEDDED_MAX:
        return [], None
    slots = asyncio.Semaphore(REQUESTS_AT_ONCE_MAX)

    async def embed(some: Sequence[str]) -> tuple[str | None, list[bytes]]:
        async with slots:
            found = await planning.embed(EmbedTexts(tenant=tenant, texts=tuple(some), holds=True))
        return found.model, [b64decode(vector) for vector in found.vectors]

    pieces = [texts[at : at + EMBEDDED_AT_ONCE_MAX] for at in range(0, len(texts), EMBEDDED_AT_ONCE_MAX)]
    try:
        first = await embed(pieces[0])
        if first[0] is None:
            return [], None
        found = [first, *await asyncio.gather(*map(embed, pieces[1:]))]
    except (Retry, Reject):
        # Words can be compared all the same, and the result says that they were.
        return [], None
    vectors = [vector for _, some in found for vector in some]
    same = {model for model, _ in found} == {first[0]} and len({len(one) for one in vectors}) == 1
    return (vectors, first[0]) if same and len(vectors) == len(texts) else ([], None)


def _clustered(known: Sequence[Task], vectors: Sequence[bytes], least: float) -> list[dict[str, Any]]:
    import numpy as np

    texts = [f"{one.name}. {one.text}" for one in known]
    rows = np.stack([np.frombuffer(one, dtype="<f4") for one in vectors]) if vectors else word_vectors(texts)
    names = [one.name for one in known]
    return [
        {"label": label([names[at] for at in group], of=names), "tasks": [known[at].id for at in group]}
        for group in cluster_by_similarity(rows, similarity_min=least)
    ]
