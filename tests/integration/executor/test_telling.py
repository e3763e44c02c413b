"""What executors tell: of themselves to whoever asks, and of what a model writes to whoever looks on."""

from typing import Any

import pytest
from nats import errors as nats_errors

from wayline.chassis import Bus
from wayline.contracts.jobs import Delta
from wayline.contracts.models import ListProviders, ProviderList
from wayline.executor.settings import Settings
from wayline.simulator.chat_server import ChatServer, Say

from .conftest import ExecutorPlatform


async def test_every_executor_tells_its_own_providers(platform: ExecutorPlatform):
    await platform.start("executor", executor=Settings(chat_base_url="http://127.0.0.1:9"))
    await platform.start("executor", executor=Settings())

    told = await platform.bus.ask_everyone(ListProviders(tenant="default"), ProviderList)

    assert all(one.executor for one in told)
    assert sorted([provider.name for provider in one.providers] for one in told) == [["chat", "offline"], ["offline"]]


async def test_a_call_goes_on_while_what_it_writes_cannot_be_shown(
    platform: ExecutorPlatform, monkeypatch: pytest.MonkeyPatch
):
    """The bus is away for longer than the client holds back what is to be sent."""
    send = Bus.send

    async def full_of_deltas(self: Bus, message: Any, **how: Any) -> None:
        if isinstance(message, Delta):
            raise nats_errors.OutboundBufferLimitError
        await send(self, message, **how)

    monkeypatch.setattr(Bus, "send", full_of_deltas)
    async with ChatServer(lambda _: Say("done and done", pace_s=0.06)) as chat:
        await platform.executor(chat)
        await platform.begin("j1")

        assert (await platform.wait_for("j1")).answer == "done and done"
        assert len(chat.calls) == 1
