"""Fetch documents from addresses that their senders name, behind the guard."""

from __future__ import annotations

import base64
from dataclasses import dataclass

from wayline.contracts.knowledge import IndexDocument
from wayline.documents import Unreadable
from wayline.guarded_http import AddressPolicy, GuardedClient, GuardedRequestError, Limits

ACCEPT = {"accept": "text/html,application/xhtml+xml,text/*,application/pdf,*/*;q=0.5"}
NOT_FETCHED = "The document was not fetched from {url}: {reason}. Send it again when that is mended, or send the file."
NOT_HERE = "Documents are not fetched from addresses here (WAYLINE_RETRIEVAL_FETCH_URLS): send the file."


@dataclass(frozen=True, slots=True)
class DocumentFetcher:
    """Fetches one document after the other; none, where the installation does not want it."""

    client: GuardedClient | None
    limits: Limits

    @classmethod
    def of(
        cls, *, wanted: bool, hosts: tuple[str, ...], proxy: str | None, ca_file: str | None, limits: Limits
    ) -> DocumentFetcher:
        """Make what fetches documents from the public web, and from these hosts of the inside."""
        client = GuardedClient(AddressPolicy.of(hosts), proxy=proxy, ca_file=ca_file) if wanted else None
        return cls(client, limits)

    async def fetch(self, asked: IndexDocument) -> IndexDocument:
        """Return a document with the bytes that its address has. Raises Unreadable."""
        if self.client is None:
            raise Unreadable(NOT_HERE)
        assert asked.url is not None
        try:
            answer = await self.client.get(asked.url, headers=ACCEPT, limits=self.limits)
        except GuardedRequestError as error:
            raise Unreadable(NOT_FETCHED.format(url=asked.url, reason=error)) from None
        found = {"content_base64": base64.b64encode(answer.content).decode(), "text": None}
        return asked.model_copy(update={**found, "media_type": answer.headers.get("content-type", "")[:200]})

    async def close(self) -> None:
        """Close its connections."""
        if self.client is not None:
            await self.client.close()
