"""How soon a message comes again, and how often: decision 3."""

from wayline.chassis.handling.worker import ATTEMPTS_MAX, NAK_MAX_S, pause_s
from wayline.chassis.topology import ADVISORY_ROUTER, CONSUMERS, TELEMETRY_TRACING


def test_no_consumer_has_a_backoff_that_overrides_its_ack_wait():
    assert {consumer.config().backoff for consumer in CONSUMERS} == {None}


def test_only_consumers_that_may_lose_messages_bound_deliveries():
    bounded = {consumer for consumer in CONSUMERS if consumer.max_deliver >= 0}

    assert bounded == {TELEMETRY_TRACING, ADVISORY_ROUTER}


def test_redelivery_pauses_double_up_to_half_a_minute():
    pauses = [pause_s(deliveries) for deliveries in range(1, ATTEMPTS_MAX)]

    assert pauses[:4] == [0.2, 0.4, 0.8, 1.6]
    assert pauses == sorted(pauses)
    assert pauses[-1] == NAK_MAX_S
    assert pause_s(100_000) == NAK_MAX_S
    assert 6 * 60 < sum(pauses) < 8 * 60
