"""Reads records while there is a webhook, and passes over them while no tenant has one.

Most installations have none, and reading costs them CPU of the notifier and of the bus for each record of every job.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from wayline.chassis import Bus, Periodic
from wayline.chassis.concurrency.work_watch import LOOK_ANYWAY_S
from wayline.chassis.handling.batches import Batches
from wayline.chassis.topology import EVENTS_NOTIFIER, NOTICES_NOTIFIER
from wayline.contracts.errors import Unavailable
from wayline.notifier.webhooks.webhook_table import WebhookTable

MOVE_WITHIN_S = 5.0
STOP_S = 10.0
"""How long what was read may take to be stored, once the last webhook is deleted."""


class RecordReader:
    """Keeps the batches of records going while any webhook exists.

    Nothing is lost between two looks: the consumer stays where it is until a webhook is there, or it is moved behind
    what lay in the stream one round before. A webhook that is created meanwhile is told of later events. A job with an
    address of its own is told of before its first record is written, and while such a notice waits nothing is moved.
    """

    def __init__(
        self,
        bus: Bus,
        webhooks: WebhookTable,
        batches: Callable[[], Batches[Any]],
        *,
        pass_over_every_s: float,
    ) -> None:
        self._bus = bus
        self._webhooks = webhooks
        self._batches = batches
        self._reading: Batches[Any] | None = None
        self._last_seen: int | None = None
        """The stream's last sequence one round ago, when there was no webhook either."""
        looking = Periodic("look for webhooks", self.look, every_s=LOOK_ANYWAY_S)
        self.look_now = looking.now
        self._rounds = (
            looking,
            Periodic("pass over records", self.pass_over, every_s=pass_over_every_s),
        )

    @property
    def is_reading(self) -> bool:
        """Return whether records are read."""
        return self._reading is not None

    async def start(self) -> None:
        for one in self._rounds:
            await one.start()

    async def stop(self, grace_s: float) -> None:
        """Look no more, and store what is in hand within the grace."""
        for one in self._rounds:
            await one.stop(grace_s)
        if self._reading is not None:
            await self._reading.stop(grace_s)

    async def check(self) -> None:
        """Check for the probes that what is read is handled. Raises Unavailable, with what is wrong."""
        if self._reading is not None:
            await self._reading.check()

    async def look(self) -> None:
        """Begin to read, or end it, where webhooks have come or gone."""
        wanted, reading = await self._webhooks.any(), self._reading
        if wanted and reading is None:
            reading = self._batches()
            try:
                await reading.start()
            except BaseException:
                await reading.stop(0)
                raise
            self._reading = reading
        elif not wanted and reading is not None:
            self._reading = None
            await reading.stop(STOP_S)

    async def pass_over(self) -> None:
        """Move the consumer behind what was in the stream one round ago, where nobody wanted it then or wants it now.

        Notices are counted before webhooks are looked for: one that is handled in between has made a webhook.
        """
        before, self._last_seen = self._last_seen, None
        seen = (await self._bus.js.stream_info("EVENTS")).state.last_seq
        notices = await self._bus.js.consumer_info(NOTICES_NOTIFIER.stream, NOTICES_NOTIFIER.name)
        if notices.num_pending or notices.num_ack_pending or await self._webhooks.any():
            return
        self._last_seen = seen
        if before is None:
            return
        records = await self._bus.js.consumer_info(EVENTS_NOTIFIER.stream, EVENTS_NOTIFIER.name)
        if records.ack_floor is None or records.ack_floor.stream_seq < before:
            await self._move_behind(before)

    async def _move_behind(self, sequence: int) -> None:
        subject = f"{self._bus.api}.CONSUMER.RESET.{EVENTS_NOTIFIER.stream}.{EVENTS_NOTIFIER.name}"
        body = orjson.dumps({"seq": sequence + 1})
        answer = orjson.loads((await self._bus.request(subject, body, timeout_s=MOVE_WITHIN_S)).data)
        if error := answer.get("error"):
            raise Unavailable("the notifier's consumer of records", detail=str(error.get("description")))
