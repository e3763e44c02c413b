"""Resources and prompts of servers over HTTP: lists with the scope `read`, their contents with `write`."""

from __future__ import annotations

from wayline.contracts.errors import NotFound
from wayline.contracts.server_resources import FillServerPrompt, ListServerResources, ReadServerResource
from wayline.gateway.adapters.keys import create_key
from wayline.testkit import Platform

from .conftest import Running, start_gateway
from .others import Others

SERVER = "/v1/mcp/servers/library"


async def test_a_resource_and_a_prompt_are_asked_for_as_given(gateway: Running, others: Others):
    await others.answer(ReadServerResource)
    await others.answer(FillServerPrompt)

    read = await gateway.client.get(f"{SERVER}/resources/read", params={"uri": "note://tides", "user_id": "alice"})
    filled = await gateway.client.post(f"{SERVER}/prompts/summary", json={"arguments": {"length": "short"}})

    assert read.json()["contents"][0]["text"] == "high"
    assert filled.json()["messages"][0]["content"]["text"] == "Sum it up."
    assert others.asked == [
        ReadServerResource(tenant="default", name="library", uri="note://tides", user_id="alice"),
        FillServerPrompt(tenant="default", name="library", prompt="summary", arguments={"length": "short"}),
    ]


async def test_a_reader_lists_resources_but_does_not_read_them(platform: Platform, others: Others):
    await others.answer_everything()
    store = await platform.store("gateway")
    reader = await create_key(store, "acme", "laptop", scopes=("read",))
    await store.close()
    gateway = await start_gateway(platform)
    headers = {"Authorization": f"Bearer {reader}"}

    answers = [
        await gateway.client.get(f"{SERVER}/resources", headers=headers),
        await gateway.client.get(f"{SERVER}/prompts", headers=headers),
        await gateway.client.get(f"{SERVER}/resources/read", params={"uri": "note://tides"}, headers=headers),
        await gateway.client.post(f"{SERVER}/prompts/summary", json={}, headers=headers),
    ]

    assert [answer.status_code for answer in answers] == [200, 200, 403, 403]


async def test_resources_of_a_server_that_another_tenant_has_are_404(gateway: Running, others: Others):
    await others.answer(ListServerResources, NotFound("server", "library"))

    assert (await gateway.client.get(f"{SERVER}/resources")).status_code == 404
