"""Replays every ended job of a platform from its log and its pinned history: each test adds to the corpus."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from wayline.chassis import Bus
from wayline.contracts.events import HistoryEnd, read_event
from wayline.executor.replay import replay
from wayline.journal import (
    History,
    HistoryLost,
    State,
    decode,
    header_fields,
    pinned_end,
    read_history,
    record_read,
)


@dataclass
class Log:
    """A job's events as decoded JSON, and the state in which they leave it."""

    tenant: str
    job_id: str
    state: str = State.NEW
    values: list[dict[str, Any]] = field(default_factory=list)


async def differences(bus: Bus) -> list[str]:
    """Return where ended jobs would go another way than they went, one line a job."""
    histories: dict[tuple[str, str, int], History] = {}
    found = []
    for log in await _read_logs(bus):
        if log.state == State.ENDED and (difference := await _difference(bus, log, histories)) is not None:
            found.append(f"{log.tenant}/{log.job_id}: {difference}")
    return found


async def _read_logs(bus: Bus) -> list[Log]:
    logs: dict[str, Log] = {}
    async for message in record_read(bus, "events.>"):
        headers = message.headers or {}
        subject = headers["Nats-Subject"]
        _, tenant, job_id = subject.split(".", 2)
        log = logs.setdefault(subject, Log(tenant, job_id))
        log.state = header_fields(headers)["state"]
        log.values += decode(await bus.body(message, tenant=tenant))
    return list(logs.values())


async def _difference(bus: Bus, log: Log, histories: dict[tuple[str, str, int], History]) -> str | None:
    end = pinned_end(log.values)
    try:
        history = None if end is None else await _history(bus, log.tenant, end, histories)
    except HistoryLost as error:
        if not str(error).endswith("is gone"):
            return str(error)
        history = None
    divergence = replay([read_event(value) for value in log.values], history=history).divergence
    return None if divergence is None else str(divergence)


async def _history(bus: Bus, tenant: str, end: HistoryEnd, histories: dict[tuple[str, str, int], History]) -> History:
    key = (tenant, end.job_id, end.seq)
    if key not in histories:
        histories[key] = await read_history(
            bus, tenant, end, kept=lambda at: histories.get((tenant, at.job_id, at.seq))
        )
    return histories[key]
