"""A document that is stored is told as stored, whether or not there is a place to wait for it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from wayline.contracts.knowledge import Document
from wayline.gateway.event_streams import EventStreams
from wayline.gateway.handlers.knowledge.documents import _after_wait
from wayline.gateway.keys import Caller


async def test_a_stored_document_without_a_place_to_wait_is_no_failure():
    streams, caller = EventStreams(1), Caller("default", "a key")
    gateway: Any = SimpleNamespace(streams=streams)
    known = Document(document_id="d1", name="d1", media_type="text/plain", size_bytes=1)

    with streams.follower(caller):
        assert await _after_wait(gateway, known, caller, wait_s=1.0) is known
