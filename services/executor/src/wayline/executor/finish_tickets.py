"""Does what the end of a ticket means: an ack, a nak, nothing, or a dead letter for one that keeps failing."""

from __future__ import annotations

from contextlib import suppress

import structlog
from nats import errors as nats_errors
from nats.aio.msg import Msg

from wayline.chassis import Bus, Delivery, Failpoint, reach
from wayline.chassis.handling import worker
from wayline.contracts.errors import Retry
from wayline.executor.adapters.budgets import Budgets
from wayline.executor.claim_jobs import unread
from wayline.executor.hold.claim import Ticket
from wayline.executor.hold.ticket_end import Acked, Failed, Forgotten, GivenBack, TicketEnd

log = structlog.get_logger()


class TicketFinisher:
    """Counts failures, too: after an unexpected error a ticket rests, longer each time, and then becomes a letter."""

    def __init__(self, bus: Bus, budgets: Budgets) -> None:
        self._bus = bus
        self._budgets = budgets
        self._failures = worker.Failures()

    async def finish(self, ticket: Ticket, message: Msg, end: TicketEnd) -> None:
        """End a ticket, by its newest delivery here."""
        match end:
            case Acked():
                await _ack(message)
            case GivenBack():
                await _give_back(ticket, message, end)
            case Failed():
                try:
                    await self._fail(ticket, message, end)
                except Retry as error:
                    # What is away or full is not the ticket's fault.
                    await _give_back(ticket, message, GivenBack(str(error), error.after_s))
            case Forgotten():
                return

    async def _fail(self, ticket: Ticket, message: Msg, end: Failed) -> None:
        """Let a ticket rest that failed, or put it aside. Raises Retry."""
        error, delivery = end.error, Delivery.of(message)
        log.error("ticket failed", job=ticket.job_id, error=repr(error), exc_info=error)
        failed = self._failures.count(ticket.sequence)
        if failed < worker.ATTEMPTS_MAX:
            return await _give_back(ticket, message, GivenBack(repr(error), worker.pause_s(failed)))
        reason = f"{type(error).__name__}: {error}"
        try:
            if end.ended is not None:
                # A job that has ended, and that cannot be read, is settled all the same.
                await self._budgets.settle(unread(end.ended, ticket))
        except Retry:
            raise
        except Exception as problem:
            reason = f"{reason}; and before it was put aside: {problem!r}"
        await self._bus.put_aside(delivery, code="undeliverable", reason=reason)
        await _ack(message)


async def _ack(message: Msg) -> None:
    # Without a connection the server delivers it again by itself.
    with suppress(nats_errors.Error):
        await message.ack()
    reach(Failpoint.EXECUTOR_ACK_AFTER)


async def _give_back(ticket: Ticket, message: Msg, end: GivenBack) -> None:
    # Each job is given back at once where this process stops: nobody needs to look at that.
    (log.warning if end.delay_s else log.info)("ticket given back", job=ticket.job_id, why=end.why)
    with suppress(nats_errors.Error):
        await message.nak(delay=end.delay_s or None)
