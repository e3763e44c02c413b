"""Counting what was handled."""

from __future__ import annotations

import time

from prometheus_client import REGISTRY

from wayline.chassis.handling.handler_metrics import HandlerMetrics


def counted(service: str, outcome: str) -> float | None:
    labels = {"service": service, "subject": "things.{tenant}", "outcome": outcome}
    return REGISTRY.get_sample_value("wayline_messages_handled_total", labels)


def test_each_outcome_is_counted_by_itself_across_instances():
    one, other = HandlerMetrics("counting", "things.{tenant}"), HandlerMetrics("counting", "things.{tenant}")

    one.count("turned away")
    for handled in (one, other, one):
        handled.measure("ok", started=time.perf_counter())

    assert (counted("counting", "ok"), counted("counting", "turned away")) == (3, 1)
    labels = {"service": "counting", "subject": "things.{tenant}"}
    assert REGISTRY.get_sample_value("wayline_message_handling_seconds_count", labels) == 3


def test_what_was_never_counted_is_not_shown():
    HandlerMetrics("silent", "things.{tenant}")

    assert counted("silent", "ok") is None
