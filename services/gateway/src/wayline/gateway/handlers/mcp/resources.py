"""Resources: the text of documents, the traces and the results of jobs, what is remembered."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote, unquote

from mcp import MCPError
from mcp_types import (
    INVALID_PARAMS,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)

from wayline.contracts.errors import NotFound, Refused
from wayline.contracts.knowledge import DocumentPage, DocumentStatus, DocumentText, ListDocuments, ReadDocument
from wayline.contracts.traces import GetTrace, Trace
from wayline.gateway.handlers.mcp.memory_resources import TEMPLATES, read_memory
from wayline.gateway.handlers.mcp.requests import McpRequest
from wayline.gateway.handlers.shared.dependencies import Gateway
from wayline.gateway.handlers.shared.own_jobs import require_own_job
from wayline.gateway.handlers.shared.read_job import read_job
from wayline.gateway.keys import Caller

JSON: Final = "application/json"
TEXT: Final = "text/plain"
PAGE: Final = 100
"""Documents in one listing."""
TEXT_MAX_CHARS: Final = 4 * 1024 * 1024
"""Of a document; the rest is left out."""

_DOCUMENT = re.compile(r"document://(?P<id>.+)", re.DOTALL)
_JOB = re.compile(r"job://(?P<id>[A-Za-z0-9_-]{1,64})/(?P<part>trace|result)")


class Resources:
    """Reads resources for MCP clients."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def listed(self, request: McpRequest, cursor: str | None) -> ListResourcesResult:
        """List the documents that can be read, newest first; jobs are found by their id."""
        page = await self.page(request.caller.tenant, request.caller.user_id, cursor=cursor)
        resources = [
            Resource(uri=document_uri(one.document_id), name=one.name, mime_type=TEXT) for one in page.documents
        ]
        return ListResourcesResult(resources=resources, next_cursor=page.next_cursor)

    async def page(self, tenant: str, user_id: str | None, *, cursor: str | None = None) -> DocumentPage:
        """Return documents that a user can read, or everybody, newest first."""
        names = () if user_id is None else (user_id,)
        asked = ListDocuments(tenant=tenant, limit=PAGE, cursor=cursor, status=DocumentStatus.READY, seen_by=names)
        return await self._gateway.bus.ask(asked, DocumentPage)

    def templates(self) -> ListResourceTemplatesResult:
        """List the kinds of resources."""
        return ListResourceTemplatesResult(
            resource_templates=[
                ResourceTemplate(
                    name="document",
                    uri_template="document://{document_id}",
                    description="The text of a document, as it was read for the knowledge base.",
                    mime_type=TEXT,
                ),
                ResourceTemplate(
                    name="job-result",
                    uri_template="job://{job_id}/result",
                    description="A job: its status, answer, citations and cost.",
                    mime_type=JSON,
                ),
                ResourceTemplate(
                    name="job-trace",
                    uri_template="job://{job_id}/trace",
                    description="Everything that a job did: a tree of spans with latency, tokens and cost.",
                    mime_type=JSON,
                ),
                *TEMPLATES,
            ]
        )

    async def read(self, request: McpRequest, uri: str) -> ReadResourceResult:
        """Read a resource. Raises MCPError for one that the tenant does not have."""
        try:
            if found := _DOCUMENT.fullmatch(uri):
                text = await self._document(request.caller, unquote(found["id"]))
                return _read(uri, text, TEXT)
            if found := _JOB.fullmatch(uri):
                await require_own_job(self._gateway, request.caller, found["id"])
                return _read(uri, await self._job(request.caller, found["id"], found["part"]), JSON)
            if (remembered := await read_memory(self._gateway, request.caller, uri)) is not None:
                return _read(uri, remembered, JSON)
        except (NotFound, Refused) as error:
            if error.status != NotFound.status:
                raise
            raise _missing(uri) from error
        raise _missing(uri)

    async def _document(self, caller: Caller, document_id: str) -> str:
        pieces, position, chars = [], 0, 0
        names = () if caller.user_id is None else (caller.user_id,)
        while chars < TEXT_MAX_CHARS:
            asked = ReadDocument(tenant=caller.tenant, document_id=document_id, position=position, audience=names)
            piece = await self._gateway.bus.ask(asked, DocumentText)
            pieces.append(piece.text)
            chars += len(piece.text)
            if piece.next_position is None:
                return "".join(pieces)
            position = piece.next_position
        return "".join(pieces)[:TEXT_MAX_CHARS] + "\n[the rest is left out]"

    async def _job(self, caller: Caller, job_id: str, part: str) -> str:
        if part == "result":
            return (await read_job(self._gateway, caller.tenant, job_id)).model_dump_json()
        asked = GetTrace(tenant=caller.tenant, job_id=job_id, user_id=caller.user_id)
        trace = await self._gateway.bus.ask(asked, Trace)
        return trace.model_dump_json()


def document_uri(document_id: str) -> str:
    """Return the URI of a document."""
    return f"document://{quote(document_id, safe='')}"


def job_of(uri: str) -> str | None:
    """Return the job that a resource is of; None: it is of none."""
    found = _JOB.fullmatch(uri)
    return found["id"] if found else None


def _read(uri: str, text: str, media_type: str) -> ReadResourceResult:
    return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type=media_type, text=text)])


def _missing(uri: str) -> MCPError:
    return MCPError(INVALID_PARAMS, f"there is no resource {uri[:300]!r}", {"uri": uri[:300]})
