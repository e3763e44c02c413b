"""Recorded jobs run again, offline: what today's code, agents or another model would do differently."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from wayline.contracts.agents import AgentConfig
from wayline.contracts.events import Event, JobRouted, JobSubmitted
from wayline.contracts.models import ModelCard
from wayline.contracts.tenant_settings import INHERITED
from wayline.executor.replay import Replay, replay, with_config, with_model, with_prompt
from wayline.executor.replay.run import EVERYTHING
from wayline.journal import History, NotAnExport, read_export, read_exported_history
from wayline.llm.catalogue import bundled

if TYPE_CHECKING:
    from wayline.client import Client

DECISIONS = EVERYTHING - {"prompt", "note"}
"""What is compared where other words to the model are meant."""
GONE = 404


class CannotReplay(ValueError):
    """What was asked for cannot be replayed, and what to do about it."""


class RecordedJob(NamedTuple):
    """An exported job: its log, and what its session had said before it."""

    events: list[Event]
    history: History | None = None


def read_file(path: Path) -> RecordedJob:
    """Read an exported job. Raises CannotReplay."""
    try:
        return _read(orjson.loads(path.read_bytes()))
    except (OSError, orjson.JSONDecodeError, NotAnExport) as error:
        raise CannotReplay(f"{path}: {error}") from None


async def read_job(client: Client, job_id: str) -> RecordedJob:
    """Read a job's log from the gateway. Raises CannotReplay."""
    return _read(await client.get(f"/v1/jobs/{job_id}/export"))


def _read(file: Any) -> RecordedJob:
    return RecordedJob(read_export(file), read_exported_history(file))


def changed(job: RecordedJob, *, model: str | None, prompt: Path | None) -> RecordedJob:
    """Return a job with the changes whose effect is to be seen. Raises CannotReplay."""
    events = job.events
    if prompt is not None:
        try:
            events = with_prompt(events, prompt.read_text())
        except (OSError, UnicodeDecodeError) as error:
            raise CannotReplay(f"{prompt}: {error}") from None
    return job._replace(events=with_model(events, _card(events, model)) if model is not None else events)


def _card(events: Sequence[Event], name: str) -> ModelCard:
    routed = next((event for event in events if isinstance(event, JobRouted)), None)
    pinned = routed.candidates.card(name) if routed is not None else None
    known = pinned or next((card for card in bundled() if card.name == name), None)
    if known is None:
        raise CannotReplay(
            f"nothing is known of a model {name!r}: name it as `provider/model`, from `wayline models list`"
        )
    return known


async def with_todays_agent(client: Client, job: RecordedJob) -> RecordedJob:
    """Return a job whose agent is configured as the gateway has it now. Raises CannotReplay."""
    from wayline.client import ApiError

    submitted = job.events[0]
    if not isinstance(submitted, JobSubmitted):
        raise CannotReplay("the log does not begin with its submission")
    try:
        agent = await client.get(f"/v1/agents/{submitted.job.agent}")
    except ApiError as error:
        if error.status == GONE:
            raise CannotReplay(f"there is no agent {submitted.job.agent!r} any more") from None
        raise
    own = set(INHERITED).difference(agent.get("inherits", ()))
    config = AgentConfig.model_validate(agent["config"], extra="ignore")
    return job._replace(events=with_config(job.events, config, own=own))


def result(replayed: Replay) -> dict[str, Any]:
    """Return what came of a replay as JSON values."""
    cost = replayed.cost
    return {
        "job_id": replayed.job_id,
        "identical": replayed.is_identical,
        "events": replayed.events,
        "steps": replayed.steps,
        "history_compared": replayed.is_history_compared,
        "divergence": asdict(replayed.divergence) if replayed.divergence else None,
        "recorded_usd": _usd(cost.recorded_usd),
        "now_usd": _usd(cost.now_usd),
        "difference_usd": _usd(cost.difference_usd),
    }


def _usd(amount: Decimal | None) -> str | None:
    return None if amount is None else f"{amount:f}"


def replayed(job: RecordedJob, *, decisions_only: bool = False) -> dict[str, Any]:
    """Replay a job and return what came of it."""
    return result(replay(job.events, history=job.history, compare=DECISIONS if decisions_only else EVERYTHING))
