"""The request of a job's next model call: its prompt, and the settings of its agent and its model. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from wayline.contracts import ids
from wayline.contracts.tools import ToolDefinition
from wayline.executor.prompt.assemble import assemble
from wayline.executor.prompt.context_window import answer_room
from wayline.journal import Job
from wayline.llm import File, ModelRequest
from wayline.llm.thinking import REASONING_EFFORT, output_max, thinking_budget


def model_request(
    job: Job,
    *,
    step: int,
    attempt: int,
    tools: tuple[ToolDefinition, ...],
    files: Mapping[str, File] | None = None,
) -> ModelRequest:
    """Return the next request to the job's model, from its state alone; `files` are the bytes of its attachments."""
    config, limits, route = job.routing.config, job.routing.limits, job.routing.route
    assert config is not None and limits is not None and route is not None
    card, slot, prompt = job.routing.card, route.slot, assemble(job, tools)
    return ModelRequest(
        card=card,
        system=prompt.system,
        messages=prompt.messages,
        tools=prompt.tools,
        cache_key=prompt.cache_key,
        breakpoints=prompt.breakpoints,
        max_output_tokens=output_max(card, slot, answer_room(job, limits.max_output_tokens), effort=config.effort),
        attempt_id=ids.attempt_id(job.tenant, job.job_id, step, attempt),
        output_schema=config.answer_schema,
        temperature=config.temperature,
        effort=config.effort or (REASONING_EFFORT if slot == "reasoning" else None),
        thinking_tokens=thinking_budget(card, slot) or None,
        files=files or {},
        attachments=prompt.attachments,
    )
