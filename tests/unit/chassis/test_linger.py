"""A batch waits longer for others while many messages come."""

import pytest

from wayline.chassis.handling.batches import BUSY_SHARE, Linger

SIZE = 64


@pytest.mark.parametrize(
    ("messages", "linger_s"), [(0, 0.25), (SIZE // BUSY_SHARE - 1, 0.25), (SIZE // BUSY_SHARE, 1.0), (SIZE, 1.0)]
)
def test_a_batch_waits_longer_after_one_of_many_messages(messages: int, linger_s: float):
    assert Linger(quiet_s=0.25, busy_s=1.0).after(messages, size=SIZE) == linger_s


def test_a_busy_batch_never_waits_less_than_a_quiet_one():
    assert Linger(quiet_s=0.25).after(SIZE, size=SIZE) == 0.25
