"""What a running job's page is sent: each piece of text with its place, so that a gap shows where one was missed."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Any, cast

from wayline.client.client import Client
from wayline.console.pages.job_stream import told_of

EVENTS: list[dict[str, Any]] = [
    {"type": "model.requested", "seq": 4, "step": 1, "attempt": 2},
    {"type": "delta", "step": 1, "attempt": 2, "text": "two ", "offset": 4},
    {"type": "progress", "state": "searching_web", "phase": "completed", "message": "3 found", "iteration": 2, "of": 5},
    {"type": "progress", "state": "reasoning", "phase": "started", "message": "looking", "iteration": 2, "of": 5},
    {"type": "queue", "position": 3, "queued": 12, "lane": "batch"},
    {"type": "job.completed", "seq": 5},
    {"type": "delta", "step": 1, "attempt": 2, "text": "never sent", "offset": 8},
]


class Told:
    """A client that is told these events."""

    async def events(self, job_id: str, after: int, *, progress: bool) -> AsyncGenerator[dict[str, Any]]:
        for event in EVENTS:
            yield event


async def test_each_piece_of_text_names_its_call_and_its_place():
    sent = [one.decode() async for one in told_of(cast(Client, Told()), "j1", 0)]

    kinds = [text.partition("event: ")[2].partition("\n")[0] for text in sent]
    data = [json.loads(text.partition("data: ")[2]) for text in sent]
    assert kinds == ["changed", "delta", "progress", "progress", "changed"]
    assert data[0] == {"type": "model.requested", "of": "1/2"}
    assert data[1] == {"text": "two ", "of": "1/2", "offset": 4}
    assert data[2] == {"message": "Step 2 of 5: looking", "of": "2/reasoning"}
    assert data[3] == {"message": "Number 3 of 12 in the queue batch", "of": "queue"}
    assert sent[0].startswith("id: 4\n") and not sent[1].startswith("id:")
