"""Runs a service's handlers on the bus: read, trace, handle, publish, ack."""

from wayline.chassis.concurrency.awaited_tasks import stopped
from wayline.chassis.concurrency.periodic import Periodic
from wayline.chassis.concurrency.retrying import keep_trying
from wayline.chassis.connection.bus import Bus, WrongSequence
from wayline.chassis.connection.delivery import Delivery, stored_at
from wayline.chassis.failpoints import Failpoint, reach
from wayline.chassis.handling.responder import Ask, asks, hears
from wayline.chassis.handling.worker import Work
from wayline.chassis.service import Part, Service, connected, main, run
from wayline.chassis.settings import BusSettings, EnvironmentSettings, HttpUrl

__all__ = [
    "Ask",
    "Bus",
    "BusSettings",
    "Delivery",
    "EnvironmentSettings",
    "Failpoint",
    "HttpUrl",
    "Part",
    "Periodic",
    "Service",
    "Work",
    "WrongSequence",
    "asks",
    "connected",
    "hears",
    "keep_trying",
    "main",
    "reach",
    "run",
    "stopped",
    "stored_at",
]
