"""One model call as it would be made now: its request, what it can cost at most, what the log says of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from wayline.contracts import ids
from wayline.contracts.events import CacheBreak, Segment
from wayline.contracts.tool_loading import always_loaded
from wayline.contracts.tools import ToolDefinition
from wayline.executor.decide import worst_case
from wayline.executor.decide.actions import CallModel
from wayline.executor.decide.client_calls import client_definitions
from wayline.executor.decide.worst_case import Need
from wayline.executor.prompt.assemble import PromptHashes
from wayline.executor.prompt.builtin_tools import pin
from wayline.executor.prompt.cache_guard import cache_break
from wayline.executor.prompt.model_request import model_request
from wayline.executor.prompt.tool_discovery import deferred_tokens
from wayline.journal import Job
from wayline.llm import File, ModelRequest


class PreparedCall(NamedTuple):
    """A call that nobody has paid for yet."""

    request: ModelRequest
    span_id: str
    prefix: tuple[Segment, ...]
    worst_usd: Decimal | None
    """The most that it can cost; None: a price is unknown."""
    need: Need | None
    """What has to be held for it; None: it is held, or nothing has to be."""
    intent: dict[str, Any]
    """The fields of `ModelRequested`, but for what is held."""

    @property
    def cache_break(self) -> CacheBreak | None:
        """Return why the provider's cache cannot continue the call before; None where it can."""
        return self.intent["cache_break"]


def prepare_call(
    job: Job,
    action: CallModel,
    hashes: PromptHashes,
    *,
    listed: Sequence[ToolDefinition],
    files: Mapping[str, File] | None = None,
    absent: Sequence[str] = (),
) -> PreparedCall:
    """Return a job's next call, its prompt compared with the one before.

    `hashes` has read the prompt before and reads this one. `listed` are all tools that the job may use, also those
    that it has to find; `files` are the bytes of its attachments, `absent` the servers of which no tool is listed.
    """
    tools = offered_tools(job, listed)
    whole = model_request(job, step=action.step, attempt=action.attempt, tools=tools, files=files)
    prefix = hashes.segments(whole)
    prompt_tokens = worst_case.most_tokens(whole, prefix)
    request = worst_case.fitted(job, whole, prompt_tokens)
    worst_usd = worst_case.worst_usd(request, prompt_tokens, at=job.at)
    intent = {
        "step": action.step,
        "attempt": action.attempt,
        "attempt_id": request.attempt_id,
        "provider": request.card.provider,
        "model": request.card.model,
        "tools": tools if job.tools.offered is None else None,
        "absent": tuple(absent) if job.tools.offered is None else (),
        "deferred_tokens": deferred_tokens(job, tools, listed),
        "prefix": prefix,
        "cache_break": cache_break(job, prefix, hashes),
        "worst_usd": worst_usd,
        "room_tokens": request.max_output_tokens if request.max_output_tokens < whole.max_output_tokens else None,
    }
    span_id = ids.model_span(job.tenant, job.job_id, action.step, action.attempt)
    return PreparedCall(request, span_id, prefix, worst_usd, worst_case.shortfall(job, worst_usd), intent)


def offered_tools(job: Job, listed: Sequence[ToolDefinition]) -> tuple[ToolDefinition, ...]:
    """Return a call's tools: those of the job's first call for good, because they are the head of every prefix."""
    if job.tools.offered is not None:
        return job.tools.offered
    config, submitted = job.routing.config, job.life.submitted
    assert config is not None and submitted is not None
    loaded = always_loaded(config, listed, required=submitted.options.required_tools)
    names = {tool.name for tool in loaded}
    deferred = [tool for tool in listed if tool.name not in names] if len(loaded) < len(listed) else ()
    pinned = pin(config.tools, loaded, code=config.code, agents=job.routing.agents, deferred=deferred)
    theirs = client_definitions(job)
    return tuple(sorted((*pinned, *theirs), key=lambda tool: tool.name)) if theirs else pinned
