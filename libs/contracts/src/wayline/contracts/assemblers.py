"""How an agent's result is made from its job's log by an assembler, and what its model is asked for then."""

from __future__ import annotations

from typing import Any, Literal

Assembler = Literal["task_plan"]
"""`task_plan`: dependencies and clusters as tools found them, waves computed, the order and the reasons a model's."""

_IDS = {"type": "array", "items": {"type": "string"}}

TASK_PLAN_DRAFT: dict[str, Any] = {
    "type": "object",
    "description": "The order of work and the reasons for it; dependencies, clusters and waves are added from what the "
    "tools found.",
    "properties": {
        "prioritized_tasks": {
            "type": "array",
            "description": "All tasks, the most important first.",
            "items": {
                "type": "object",
                "properties": {
                    "id": {"type": "string", "description": "As detect_dependencies has it."},
                    "reason": {"type": "string", "description": "Why it stands here, in one sentence."},
                },
                "required": ["id", "reason"],
            },
        },
        "reasoning": {"type": "string", "description": "What decided the order, and what is not known."},
    },
    "required": ["prioritized_tasks", "reasoning"],
}
"""What a model writes for a task plan."""

TASK_PLAN: dict[str, Any] = {
    "type": "object",
    "properties": {
        "prioritized_tasks": {
            "type": "array",
            "description": "Every task, none before one that it needs.",
            "items": {
                "type": "object",
                "properties": {
                    "id": {"type": "string"},
                    "name": {"type": "string"},
                    "wave": {"type": "integer", "minimum": 1},
                    "reason": {"type": "string"},
                },
                "required": ["id", "name", "wave"],
            },
        },
        "execution_waves": {
            "type": "array",
            "description": "Tasks that can be done at once, wave by wave.",
            "items": {
                "type": "object",
                "properties": {"wave": {"type": "integer", "minimum": 1}, "tasks": _IDS},
                "required": ["wave", "tasks"],
            },
        },
        "dependencies": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "task": {"type": "string"},
                    "needs": {"type": "string", "description": "The task that must be done before it."},
                    "weight": {"type": "number", "minimum": 0, "maximum": 1},
                    "kind": {"type": "string"},
                    "quote": {"type": "string", "description": "The words that say so."},
                    "document_id": {"type": "string", "description": "Whose words they are; absent: the task's own."},
                    "source_job": {"type": "string", "description": "The earlier plan that it is known from."},
                    "cut": {
                        "type": "boolean",
                        "description": "It was the weakest of a cycle, and the waves ignore it.",
                    },
                    "cycle": {**_IDS, "description": "That cycle: each task needs the next, the last one the first."},
                },
                "required": ["task", "needs", "weight", "quote"],
            },
        },
        "clusters": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"label": {"type": "string"}, "tasks": _IDS},
                "required": ["label", "tasks"],
            },
        },
        "reasoning": {"type": "string"},
        "execution_metadata": {
            "type": "object",
            "properties": {
                "steps": {"type": "integer", "minimum": 0},
                "calls": {"type": "integer", "minimum": 0},
                "duration_ms": {"type": "integer", "minimum": 0},
                "empty_because": {"type": "string"},
            },
            "required": ["steps", "calls", "duration_ms"],
        },
    },
    "required": [
        "prioritized_tasks",
        "execution_waves",
        "dependencies",
        "clusters",
        "reasoning",
        "execution_metadata",
    ],
}
"""A whole task plan."""

DRAFTS: dict[Assembler, dict[str, Any]] = {"task_plan": TASK_PLAN_DRAFT}
"""What a model is asked for, by the assembler that makes the result of it."""
NEEDED: dict[Assembler, tuple[str, ...]] = {"task_plan": ("detect_dependencies",)}
"""Tools whose recorded results an assembler cannot do without: an answer before them is sent back once."""
