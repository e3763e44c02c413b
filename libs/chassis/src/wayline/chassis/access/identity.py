"""An identity: a user of the bus, with the account that it belongs to and the subjects that it may use."""

from __future__ import annotations

from dataclasses import dataclass

from wayline.chassis.topology import CONSUMERS

STREAMS_ACCOUNT = "WAYLINE"
"""The account that holds the streams."""
OWN_API = "$JS.API"
IMPORTED_API = "WAYLINE.API"
"""JetStream's API as an account without streams imports it: its own `$JS.API` is empty."""


@dataclass(frozen=True)
class Identity:
    """A user of the bus: its allow-lists beside its own inbox and the consumers it binds to."""

    name: str
    publish: tuple[str, ...]
    answers: tuple[str, ...] = ()
    """The subjects of the requests that it answers."""
    subscribe: tuple[str, ...] = ()
    """The other subjects that it subscribes to."""
    asks_clients: tuple[str, ...] = ()
    """The subjects of requests that clients answer; the third word is their tenant."""
    tells_clients: tuple[str, ...] = ()
    """The subjects of what clients hear of it; with a place for a tenant in the third word each hears its own."""
    writes_logs: bool = False

    @property
    def inbox(self) -> str:
        return f"_INBOX_{self.name}"

    @property
    def account(self) -> str:
        return STREAMS_ACCOUNT if self.writes_logs else self.name.upper()

    @property
    def api(self) -> str:
        """Return the prefix under which it reaches JetStream."""
        return OWN_API if self.writes_logs else IMPORTED_API

    def uses(self) -> list[str]:
        """Return the subjects that it publishes on, as the account of the streams names them."""
        bound = [consumer for consumer in CONSUMERS if consumer.service == self.name]
        subjects = (
            *self.publish,
            f"probe.{self.name}",
            *(f"{OWN_API}.CONSUMER.MSG.NEXT.{c.stream}.{c.name}" for c in bound),
            *(f"{OWN_API}.CONSUMER.INFO.{c.stream}.{c.name}" for c in bound),
            *(f"$JS.ACK.{c.stream}.{c.name}.>" for c in bound),
        )
        return list(dict.fromkeys(subjects))

    def may_publish(self) -> list[str]:
        return [*(self.named_here(subject) for subject in self.uses()), *self.asks_clients, *self.tells_clients]

    def may_subscribe(self) -> list[str]:
        return [f"{self.inbox}.>", *self.answers, *self.subscribe]

    def named_here(self, subject: str) -> str:
        """Return a subject as this identity's own account names it."""
        return subject.replace(f"{OWN_API}.", f"{self.api}.", 1) if subject.startswith(f"{OWN_API}.") else subject
