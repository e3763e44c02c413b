"""Runs a service's handlers on the bus: read, trace, handle, publish, ack."""

from wayline.chassis.bus import Bus, WrongSequence
from wayline.chassis.delivery import Delivery, stored_at
from wayline.chassis.failpoints import Failpoint, reach
from wayline.chassis.periodic import Periodic
from wayline.chassis.responder import Ask, asks, hears
from wayline.chassis.retrying import keep_trying
from wayline.chassis.service import Part, Service, connected, main, run
from wayline.chassis.settings import BusSettings, EnvironmentSettings, HttpUrl
from wayline.chassis.tasks import stopped
from wayline.chassis.worker import Work

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
