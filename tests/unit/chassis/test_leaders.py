"""What a start hears from a bus that is slow, or from a cluster that has no leader yet."""

from __future__ import annotations

import nats.errors
import nats.js.errors
import pytest

from wayline.chassis.connection import leaders
from wayline.chassis.connection.leaders import NO_PEERS, once_led
from wayline.contracts.errors import Unavailable


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no time pass between two tries."""
    monkeypatch.setattr(leaders, "ASK_AGAIN_S", 0)


async def test_a_silent_bus_is_asked_again():
    errors = [nats.errors.TimeoutError(), nats.js.errors.ServiceUnavailableError()]

    async def ask() -> str:
        if errors:
            raise errors.pop()
        return "led"

    assert await once_led(ask) == "led"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (nats.errors.TimeoutError(), "the bus does not answer: TimeoutError; try again"),
        (
            nats.js.errors.BadRequestError(err_code=NO_PEERS),
            "the cluster does not answer: too few servers have joined it; try again",
        ),
    ],
)
async def test_a_bus_that_stays_silent_is_told_of_in_words(
    monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
):
    monkeypatch.setattr(leaders, "LEADER_WITHIN_S", -1)

    async def ask() -> None:
        raise error

    with pytest.raises(Unavailable) as raised:
        await once_led(ask)

    assert str(raised.value) == said


async def test_a_request_that_is_wrong_is_refused_at_once():
    async def ask() -> None:
        raise nats.js.errors.BadRequestError(err_code=10025)

    with pytest.raises(nats.js.errors.BadRequestError):
        await once_led(ask)
