"""A cluster that is choosing, or that is young, is asked again; any other refusal comes at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from nats.js.errors import APIError, BadRequestError, ServiceUnavailableError

from wayline.chassis.connection import leaders
from wayline.chassis.connection.leaders import NO_PEERS, once_led


def answering(*errors: APIError) -> tuple[Callable[[], Awaitable[str]], list[APIError]]:
    """Return what fails with each of some errors, then answers; and the errors that are left."""
    left = list(errors)

    async def ask() -> str:
        if left:
            raise left.pop(0)
        return "led"

    return ask, left


async def test_a_cluster_without_a_leader_or_a_place_is_asked_again(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(leaders, "ASK_AGAIN_S", 0.0)
    ask, left = answering(ServiceUnavailableError(code=503), BadRequestError(code=400, err_code=NO_PEERS))

    assert await once_led(ask) == "led"
    assert left == []


async def test_any_other_refusal_comes_at_once():
    ask, left = answering(BadRequestError(code=400, err_code=10052), ServiceUnavailableError(code=503))

    with pytest.raises(BadRequestError):
        await once_led(ask)
    assert len(left) == 1


async def test_what_does_not_pass_comes_after_the_time(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(leaders, "LEADER_WITHIN_S", -1.0)
    ask, _ = answering(BadRequestError(code=400, err_code=NO_PEERS))

    with pytest.raises(BadRequestError):
        await once_led(ask)
