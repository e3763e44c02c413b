"""Dependencies, clusters and execution waves of tasks, found without a model. Pure."""

from __future__ import annotations

from wayline.planning.clusters import (
    SIMILARITY_MIN,
    WORDS_SIMILARITY_MIN,
    cluster_by_similarity,
    label,
    word_vectors,
)
from wayline.planning.dependencies import Detected, detect_dependencies
from wayline.planning.execution_waves import Cycle, Waves, prioritized, strongest, waves
from wayline.planning.read_tasks import read_tasks
from wayline.planning.tasks import (
    DEPENDENCIES_MAX,
    PASSAGES_MAX,
    QUOTE_MAX_CHARS,
    TASKS_MAX,
    TEXT_MAX_CHARS,
    Dependency,
    Passage,
    Task,
    TooManyTasks,
)
from wayline.planning.words import telling, words

__all__ = [
    "DEPENDENCIES_MAX",
    "PASSAGES_MAX",
    "QUOTE_MAX_CHARS",
    "SIMILARITY_MIN",
    "TASKS_MAX",
    "TEXT_MAX_CHARS",
    "WORDS_SIMILARITY_MIN",
    "Cycle",
    "Dependency",
    "Detected",
    "Passage",
    "Task",
    "TooManyTasks",
    "Waves",
    "cluster_by_similarity",
    "detect_dependencies",
    "label",
    "prioritized",
    "read_tasks",
    "strongest",
    "telling",
    "waves",
    "word_vectors",
    "words",
]
