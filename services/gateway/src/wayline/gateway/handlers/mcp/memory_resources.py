"""What is remembered, as resources: subjects with their insights, insights, and a user's memories."""

from __future__ import annotations

import json
import re
from typing import Final
from urllib.parse import unquote

from mcp_types import ResourceTemplate

from wayline.contracts.memory import (
    FactPage,
    GetSubject,
    ListInsights,
    ListMemories,
    Subject,
    SubjectRef,
)
from wayline.gateway.handlers.memory.facts import insight_of, user_of
from wayline.gateway.handlers.shared.dependencies import Gateway
from wayline.gateway.keys import Caller

JSON: Final = "application/json"
MEMORIES_MAX: Final = 100
"""Of a user in one resource: more than the tiers hold."""
INSIGHTS_MAX: Final = 20
"""Of a subject: the most important."""

_SUBJECT = re.compile(r"subject://(?P<type>[a-z][a-z0-9_-]{0,31})/(?P<id>[^/]+)")
_INSIGHT = re.compile(r"insight://(?P<id>[A-Za-z0-9_-]{1,64})")
_MEMORY = re.compile(r"memory://(?P<user>[^/]+)")

TEMPLATES: Final = (
    ResourceTemplate(
        name="subject",
        uri_template="subject://{type}/{id}",
        description="A subject: its attributes, its links, and the 20 most important insights about it.",
        mime_type=JSON,
    ),
    ResourceTemplate(
        name="insight",
        uri_template="insight://{fact_id}",
        description="One insight, with where it is from.",
        mime_type=JSON,
    ),
    ResourceTemplate(
        name="memory",
        uri_template="memory://{user_id}",
        description="What is remembered of a user.",
        mime_type=JSON,
    ),
)


async def read_memory(gateway: Gateway, caller: Caller, uri: str) -> str | None:
    """Return what is remembered under a URI as JSON; None: it is no such URI. Raises NotFound, and Refused."""
    if found := _SUBJECT.fullmatch(uri):
        return await _subject(gateway, caller, SubjectRef(type=found["type"], id=unquote(found["id"])))
    if found := _INSIGHT.fullmatch(uri):
        return (await insight_of(gateway, caller, found["id"])).model_dump_json()
    if found := _MEMORY.fullmatch(uri):
        user_id = user_of(caller, unquote(found["user"]))
        asked = ListMemories(tenant=caller.tenant, user_id=user_id, limit=MEMORIES_MAX)
        return (await gateway.bus.ask(asked, FactPage)).model_dump_json()
    return None


async def _subject(gateway: Gateway, caller: Caller, ref: SubjectRef) -> str:
    subject = await gateway.bus.ask(GetSubject(tenant=caller.tenant, ref=ref), Subject)
    insights = await gateway.bus.ask(ListInsights(tenant=caller.tenant, about=ref, limit=INSIGHTS_MAX), FactPage)
    facts = [fact.model_dump(mode="json") for fact in insights.facts]
    return json.dumps(subject.model_dump(mode="json") | {"most_important": facts}, ensure_ascii=False)
