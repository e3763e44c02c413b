"""The result of an agent with an output schema: assembled from the log where it says so, or empty and why. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from wayline.contracts.assemblers import NEEDED, Assembler
from wayline.contracts.jobs import Failure
from wayline.executor.decide.actions import Complete, Fail
from wayline.executor.decide.task_plan import empty_task_plan, task_plan
from wayline.journal import Job
from wayline.llm.broken_json import repair
from wayline.llm.structured import value_problem

STEPS_MAX = 400_000
"""Of comparing an assembled result with its schema: ours are long, and no stranger wrote them."""
DEPTH_MAX = 16
"""Levels of a schema for which an empty value is made."""

ASSEMBLE: dict[Assembler, Callable[[Job, dict[str, Any]], dict[str, Any]]] = {"task_plan": task_plan}
"""What makes a result of a job and of its model's answer, by name."""
EMPTY: dict[Assembler, Callable[[Job, str], dict[str, Any]]] = {"task_plan": empty_task_plan}
"""What makes a result without anything in it but why, by the same name."""


def missing_records(job: Job) -> tuple[str, ...]:
    """Return the tools whose results the job's assembler needs, and that have not been called."""
    config = job.routing.config
    if config is None or config.assemble is None:
        return ()
    called = {one.tool for one in job.tools.recorded}
    return tuple(tool for tool in NEEDED[config.assemble] if tool not in called)


def final_result(job: Job, answer: Complete) -> Complete | Fail:
    """Return an answer as the agent's result: assembled, where its agent says so, and valid."""
    config = job.routing.config
    if config is None or config.assemble is None or config.output_schema is None:
        return answer
    value = ASSEMBLE[config.assemble](job, repair.strict(answer.answer))
    problem = value_problem(config.output_schema, value, steps_max=STEPS_MAX)
    if problem is not None:
        words = f"the assembled result does not fit the output schema: {problem}"
        return without_result(job, Failure(code="invalid_output", message=words))
    return Complete(encoded(value), answer.citations, partial=answer.partial, reason=answer.reason)


def without_result(job: Job, failure: Failure) -> Complete | Fail:
    """Return the end of a job for which no answer fits: a failure, or an empty result that says why."""
    config = job.routing.config
    if config is None or config.output_schema is None or config.on_invalid != "empty":
        return Fail(failure)
    assembler = config.assemble
    why = failure.message
    value = empty_value(config.output_schema, why) if assembler is None else EMPTY[assembler](job, why)
    if value_problem(config.output_schema, value, steps_max=STEPS_MAX) is not None:
        return Fail(failure)
    return Complete(encoded(value), partial=True, reason=f"the result is empty: {why}")


def encoded(value: Any) -> str:
    """Return a result as it is kept."""
    return orjson.dumps(value).decode()


def empty_value(schema: Any, why: str, *, depth: int = 0) -> Any:
    """Return the least that a schema takes, as far as that is plain; `why` where it has `empty_because`."""
    if not isinstance(schema, dict) or depth > DEPTH_MAX:
        return None
    for given in ("const", "default"):
        if given in schema:
            return schema[given]
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    if "null" in kinds:
        return None
    if "object" in kinds or "properties" in schema:
        return _empty_object(schema, why, depth)
    if "array" in kinds:
        return []
    if "string" in kinds:
        return ""
    if "boolean" in kinds:
        return False
    return schema.get("minimum", 0) if {"integer", "number"} & set(kinds) else None


def _empty_object(schema: dict[str, Any], why: str, depth: int) -> dict[str, Any]:
    properties = schema.get("properties")
    properties = properties if isinstance(properties, dict) else {}
    names = [name for name in schema.get("required") or () if isinstance(name, str)]
    value = {name: empty_value(properties.get(name), why, depth=depth + 1) for name in names}
    return value | ({"empty_because": why} if "empty_because" in properties else {})
