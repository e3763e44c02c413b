"""The map of the bus: every subject, what travels on it, which stream keeps it, who may say and hear it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules

from pydantic import BaseModel

import wayline.contracts
from wayline.chassis import topology
from wayline.chassis.access.clients import ANONYMOUS
from wayline.chassis.access.identity import Identity
from wayline.chassis.access.permissions import IDENTITIES
from wayline.contracts.base import CATALOGUE, Frozen, Message, Request
from wayline.contracts.events import AnyEvent

for module in iter_modules(wayline.contracts.__path__):
    import_module(f"wayline.contracts.{module.name}")

OURS = {subject: kind for subject, kind in CATALOGUE.items() if kind.__module__.startswith("wayline.contracts.")}
"""What the contracts declare: a service may also read the server's own words, which are not ours to describe."""


class Record(Frozen):
    """One step of a job: all its events or none. A job's log is the records on its subject."""

    events: tuple[AnyEvent, ...]


@dataclass(frozen=True)
class Channel:
    """A subject, what travels on it, and how."""

    subject: str
    message: str
    """Its name in the tables."""
    schema: str | None
    """Its file in proto/; None: the body is not ours."""
    about: str
    kind: str
    """`queue`, `log`, `stream`, `request` or `core`."""
    replies: type[BaseModel] | None = None

    @property
    def listens(self) -> str:
        return ".".join("*" if token.startswith("{") else token for token in self.subject.split("."))


BESIDES = (
    Channel(
        "events.{tenant}.{job_id}", "Record", "messages/Record.json", "A job's log: one message is one step.", "log"
    ),
    Channel(
        "live.{tenant}.{job_id}",
        "Record",
        "messages/Record.json",
        "The same records, republished as they land.",
        "core",
    ),
    Channel(
        "dead.{stream}.{consumer}.{tenant}",
        "dead letter",
        None,
        "What could not be handled: the original body, with why and where from in `Wayline-Dead-…` headers.",
        "stream",
    ),
)
"""Subjects whose bodies are not one message of the catalogue."""


def channels() -> list[Channel]:
    """Return every subject of the bus, sorted."""
    return sorted([*map(_channel, OURS.values()), *BESIDES], key=lambda one: one.subject)


def _channel(kind: type[Message]) -> Channel:
    stored = stream_of(kind.listens())
    queue = stored is not None and any(c.stream == stored for c in topology.CONSUMERS)
    how = "request" if issubclass(kind, Request) else "queue" if queue else "stream" if stored else "core"
    return Channel(
        subject=kind.subject_template,
        message=kind.__name__,
        schema=f"messages/{kind.__name__}.json",
        about=about(kind),
        kind=how,
        replies=kind.replies if issubclass(kind, Request) else None,
    )


def about(kind: type[BaseModel]) -> str:
    """Return the first sentence of a model's own docstring; empty where it has none."""
    docstring = kind.__dict__.get("__doc__") or ""
    return " ".join(docstring.split("\n\n", 1)[0].split())


def meets(pattern: str, subject: str) -> bool:
    """Return whether a NATS pattern and a subject with `*` have a literal subject in common."""
    wanted, given = pattern.split("."), subject.split(".")
    for n, token in enumerate(wanted):
        if token == ">":
            return len(given) > n
        if n >= len(given) or (token != "*" and given[n] not in ("*", token)):
            return False
    return len(wanted) == len(given)


def stream_of(subject: str) -> str | None:
    """Return the stream that stores a subject."""
    for stream in topology.STREAMS:
        if any(meets(pattern, subject) for pattern in stream.subjects or []):
            return stream.name
    return None


def consumers_of(subject: str) -> list[topology.Consumer]:
    return [c for c in topology.CONSUMERS if c.stream == stream_of(subject) and meets(c.subject, subject)]


def _said(identity: Identity) -> tuple[str, ...]:
    return (*identity.publish, *identity.asks_clients, *identity.tells_clients)


def who_says(channel: Channel) -> list[str]:
    """Return the identities that may publish here; the bus itself republishes and schedules."""
    publishers = [i.name for i in IDENTITIES.values() if any(meets(p, channel.listens) for p in _said(i))]
    if any(meets(p, channel.listens) for p in ANONYMOUS.may_publish()):
        publishers.append("client")
    by_bus = {"live.{tenant}.{job_id}": "the bus", "due.{tenant}.{job_id}.{wait_id}": "the bus"}
    return [by_bus[channel.subject]] if channel.subject in by_bus else publishers


def who_hears(channel: Channel) -> list[str]:
    """Return the identities that subscribe here or are bound to a consumer of it."""
    subscribers = [
        i.name for i in IDENTITIES.values() if any(meets(p, channel.listens) for p in (*i.answers, *i.subscribe))
    ]
    subscribers += [c.service for c in consumers_of(channel.listens)]
    if any(meets(p, channel.listens) for p in ANONYMOUS.may_subscribe()):
        subscribers.append("client")
    return list(dict.fromkeys(subscribers))
