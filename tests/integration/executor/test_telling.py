"""What executors tell of themselves to whoever asks."""

from wayline.contracts.models import ListProviders, ProviderList
from wayline.executor.settings import Settings

from .conftest import Stage


async def test_every_executor_tells_its_own_providers(stage: Stage):
    await stage.start(Settings(chat_base_url="http://127.0.0.1:9"))
    await stage.start(Settings())

    told = await stage.bus.ask_everyone(ListProviders(tenant="default"), ProviderList)

    assert all(one.executor for one in told)
    assert sorted([provider.name for provider in one.providers] for one in told) == [["chat", "offline"], ["offline"]]
