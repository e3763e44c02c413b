"""Words that are sent as they are written, also to a client that joins in the midst of an answer."""

from datetime import UTC, datetime
from decimal import Decimal

import orjson

from wayline.contracts import events as e
from wayline.contracts.chat import AssistantMessage
from wayline.contracts.jobs import Delta
from wayline.contracts.money import Usage
from wayline.gateway.openai.chat_answer import Chunks
from wayline.gateway.openai.streamed_text import EagerText

AT = datetime(2026, 1, 1, tzinfo=UTC)
WHOLE = "One two three."


def piece(text: str, offset: int | None) -> Delta:
    return Delta(tenant="acme", job_id="j", step=1, attempt=1, text=text, offset=offset)


def settled() -> e.ModelCompleted:
    trace = e.SpanRef(trace_id="0" * 32, span_id="0" * 16)
    stamp = {"job_id": "j", "seq": 4, "at": AT, "trace": trace, "step": 1, "attempt": 1, "attempt_id": "a"}
    message = AssistantMessage(text=WHOLE)
    return e.ModelCompleted(
        **stamp, message=message, usage=Usage(), cost_usd=Decimal(0), stop_reason="end", duration_ms=1
    )


def sent(*heard: Delta | e.ModelCompleted) -> str:
    """Return what a client has read at the end."""
    text, chunks = EagerText(), Chunks("j", model="m", created=AT, with_usage=False)
    raw = [one for item in heard for one in text.hear(item, chunks)] + [*chunks.text(text.rest(WHOLE))]
    return "".join(orjson.loads(one[6:])["choices"][0]["delta"].get("content", "") for one in raw)


def test_a_client_from_the_beginning_on_reads_each_word_once():
    assert sent(piece("One ", 0), piece("two ", 4), piece("three.", 8), settled()) == WHOLE
    assert sent(piece("One ", None), piece("two three.", None), settled()) == WHOLE


def test_a_client_that_missed_the_beginning_reads_the_whole_once_settled():
    assert sent(piece("two ", 4), piece("three.", 8), settled()) == WHOLE
    assert sent(piece("One ", 0), piece("three.", 8), settled()) == WHOLE
