"""The circuit breaker, with the time handed to it."""

from wayline.executor.adapters.circuit_breaker import (
    FAILURES_MAX,
    OPEN_S,
    PROBE_CHECK_S,
    PROBE_MAX_S,
    WINDOW_S,
    CircuitBreaker,
)


def opened(at: float = 0.0) -> CircuitBreaker:
    breaker = CircuitBreaker()
    open_until = [breaker.failed(at) for _ in range(FAILURES_MAX)]
    assert open_until == [None] * (FAILURES_MAX - 1) + [at + OPEN_S]
    return breaker


def test_so_many_failures_in_a_window_open_it_and_nothing_passes():
    breaker = opened(at=100)

    assert not breaker.closed
    assert breaker.enter(100) == OPEN_S
    assert breaker.enter(100 + OPEN_S - 1) == 1


def test_failures_far_apart_do_not():
    breaker = CircuitBreaker()

    assert [breaker.failed(n * WINDOW_S) for n in range(20)] == [None] * 20
    assert breaker.enter(20 * WINDOW_S) == 0


def test_after_its_time_one_probe_passes_and_others_wait():
    breaker = opened()

    assert [breaker.enter(OPEN_S) for _ in range(3)] == [0.0, PROBE_CHECK_S, PROBE_CHECK_S]


def test_a_probe_that_goes_well_closes_it():
    breaker = opened()
    breaker.enter(OPEN_S)

    assert breaker.succeeded(OPEN_S + 1)
    assert breaker.closed and [breaker.enter(OPEN_S + 1) for _ in range(3)] == [0, 0, 0]
    assert breaker.failed(OPEN_S + 2) is None, "the failures of before are forgotten"


def test_a_probe_that_fails_opens_it_again():
    breaker = opened()
    breaker.enter(OPEN_S)

    assert breaker.failed(OPEN_S + 2) == OPEN_S + 2 + OPEN_S
    assert breaker.enter(OPEN_S + 3) == OPEN_S - 1


def test_a_probe_that_said_nothing_lets_the_next_one_try():
    breaker = opened()
    breaker.enter(OPEN_S)
    breaker.left()

    assert breaker.enter(OPEN_S) == 0


def test_a_probe_without_an_outcome_is_given_up():
    breaker = opened()
    breaker.enter(OPEN_S)

    assert breaker.enter(OPEN_S + PROBE_MAX_S - 1) == PROBE_CHECK_S
    assert breaker.enter(OPEN_S + PROBE_MAX_S) == 0


def test_outcomes_of_earlier_calls_change_nothing_while_open():
    breaker = opened()

    assert breaker.failed(1) is None and not breaker.succeeded(1)
    assert breaker.enter(1) == OPEN_S - 1
