"""Documents say whether they hold the words of strangers, and so do the passages that a search finds."""

from typing import Any

import pytest

from wayline.contracts.knowledge import AttachmentList, DescribeAttachments
from wayline.testkit.walks import cases

from .conftest import Client

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize(
    ("fields", "trust"),
    cases(
        [
            ({"name": "notes.md"}, "trusted"),
            ({"name": "notes.md", "trust": "untrusted"}, "untrusted"),
            ({"name": "https://shop.example/offers"}, "untrusted"),
            ({"name": "offers", "metadata": {"url": "https://shop.example"}}, "untrusted"),
            ({"name": "offers", "metadata": {"url": "https://shop.example"}, "trust": "trusted"}, "trusted"),
        ]
    ),
)
async def test_passages_and_files_say_whether_their_document_is_trusted(
    tenant_client: Client, fields: dict[str, Any], trust: str
):
    client = tenant_client
    document = await client.ingest("d1", "the tide turns twice a day", **fields)

    [hit] = (await client.search("tide")).hits
    described = await client.bus.ask(DescribeAttachments(tenant=client.tenant, document_ids=("d1",)), AttachmentList)

    untrusted = trust == "untrusted"
    assert (document.trust, hit.untrusted, described.attachments[0].untrusted) == (trust, untrusted, untrusted)


async def test_a_newer_version_of_a_document_brings_its_own_trust(tenant_client: Client):
    await tenant_client.ingest("d1", "the tide turns", name="tides", trust="untrusted")
    await tenant_client.ingest("d1", "the tide turns again", name="tides")

    [hit] = (await tenant_client.search("tide")).hits

    assert not hit.untrusted
