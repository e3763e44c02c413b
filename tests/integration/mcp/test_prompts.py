"""Prompts at `/mcp`: a tenant's templates, completed with a user's values."""

from __future__ import annotations

import pytest
from mcp import MCPError
from mcp_types import PromptReference, ResourceTemplateReference

from wayline.contracts.tenants import CreateTenant, Tenant
from wayline.gateway.adapters.prompts import Prompts
from wayline.gateway.shapes.prompts import PromptBody
from wayline.testkit import Platform
from wayline.testkit.walks import cases

from ..jobs.conftest import index_document
from .conftest import Door, open_door

ABOUT = PromptBody.model_validate(
    {
        "title": "Ask about a document",
        "description": "Ask a question about a document.",
        "arguments": [
            {"name": "document", "description": "Its id."},
            {"name": "tone", "required": False, "values": ["kind", "plain"]},
        ],
        "messages": [
            {"text": "Answer in a {{tone}} tone."},
            {"role": "assistant", "text": "Which document?"},
            {"resource": "document://{{document}}"},
        ],
    }
)


async def put(door: Door, tenant: str = "default") -> None:
    await Prompts(await door.platform.store("gateway")).put(tenant, "about", ABOUT)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_prompt_is_listed_and_completed_with_a_document(platform: Platform, mode: str):
    door = await open_door(platform, "retrieval")
    await put(door)
    await index_document(platform, "d/1", "lease.txt", "The lease runs for ten years.")

    async with door.client(mode=mode) as client:
        [listed] = (await client.list_prompts()).prompts
        got = await client.get_prompt("about", {"document": "d/1", "tone": "kind"})

    assert (listed.name, listed.title, listed.description) == ("about", ABOUT.title, ABOUT.description)
    assert [(one.name, one.required) for one in listed.arguments or ()] == [("document", True), ("tone", False)]
    assert [message.role for message in got.messages] == ["user", "assistant", "user"]
    assert got.messages[0].content.text == "Answer in a kind tone."  # pyright: ignore[reportAttributeAccessIssue]
    assert "ten years" in got.messages[2].content.resource.text  # pyright: ignore[reportAttributeAccessIssue]


async def test_values_are_proposed_while_a_user_types(platform: Platform):
    door = await open_door(platform)
    await put(door)

    async with door.client() as client:
        about = PromptReference(type="ref/prompt", name="about")
        found = await client.complete(about, {"name": "tone", "value": "k"})
        template = ResourceTemplateReference(type="ref/resource", uri="document://{document_id}")
        nothing = await client.complete(template, {"name": "document_id", "value": ""})

    assert (found.completion.values, nothing.completion.values) == (["kind"], [])


@pytest.mark.parametrize(
    ("name", "values", "words"),
    cases(
        [
            ("other", {}, "no prompt is called 'other'"),
            ("about", {}, "lacks document"),
            ("about", {"document": "gone"}, "there is no resource 'document://gone'"),
        ]
    ),
)
async def test_a_prompt_that_cannot_be_completed_is_an_error(
    platform: Platform, name: str, values: dict[str, str], words: str
):
    door = await open_door(platform, "retrieval")
    await put(door)

    async with door.client() as client:
        with pytest.raises(MCPError, match=words):
            await client.get_prompt(name, values)


async def test_another_tenants_prompts_are_not_seen(platform: Platform):
    door = await open_door(platform)
    for tenant in ("acme", "globex"):
        await platform.bus.ask(CreateTenant(tenant=tenant), Tenant)
    await put(door, "acme")

    async with door.client(await door.key(tenant="globex")) as client:
        assert (await client.list_prompts()).prompts == []
        with pytest.raises(MCPError, match="no prompt is called"):
            await client.get_prompt("about", {"document": "d"})
