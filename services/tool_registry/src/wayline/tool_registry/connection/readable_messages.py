"""Give the MCP library each message of a server as it can read it, with what an answer proves marked.

The library fails a call whose result is oddly spelled or shaped, after its effect, and makes errors of its own that
look like those of servers. So what a server wrote is read here first, and only an error that bears our mark is its own.
"""

from __future__ import annotations

import asyncio
import json
from enum import StrEnum
from typing import Any

from mcp_types import INTERNAL_ERROR

from wayline.tool_registry.calls.server_answers import (
    Unreadable,
    Verdict,
    answer_in,
    answer_in_part,
    bounded_result,
    message_in,
    whole_characters,
)

MARK = "wayline/proves"
"""In the data of an error, where a server's own is overwritten."""
AFTER_S = "wayline/after_s"
"""In the data of an error that proves BUSY: how long the server asks to be left alone, or null."""
OFF_LOOP_BYTES = 64 * 1024
"""A longer message is read on a thread."""


class Proof(StrEnum):
    """What an error that the library raises for a call proves."""

    REFUSED = "refused"
    """The server's own words."""
    NEEDS_LOGIN = "needs login"
    """The server refused the login, in our words."""
    NEEDS_SCOPE = "needs scope"
    """The login was given for too little, in our words."""
    BUSY = "busy"
    """The server takes no more requests for a while: it says that it did nothing."""
    UNKNOWN = "unknown"
    """Nothing that can be read came."""
    SESSION_ENDED = "session ended"
    """The server says that it does not know the session: where it has restarted, nothing was done."""
    LOST = "lost"
    """Nothing came, and the connection is broken."""
    UNSENT = "unsent"
    """Our own code did not send the request."""


async def readable(raw: bytes, *, most: int, call_id: Any = None, why_cut: str = "") -> bytes | None:
    """Return a server's message for the library; None: nothing in it can be read, or it answers something else.

    `call_id` is what the message answers where its wire says so. `why_cut` is why not all of it was read.
    """
    if len(raw) < OFF_LOOP_BYTES:
        return readable_now(raw, most=most, call_id=call_id, why_cut=why_cut)
    return await asyncio.to_thread(readable_now, raw, most=most, call_id=call_id, why_cut=why_cut)


def readable_now(raw: bytes, *, most: int, call_id: Any = None, why_cut: str = "") -> bytes | None:
    """Do what `readable` does, on this thread."""
    try:
        message = message_in(raw)
    except Unreadable as error:
        answer = answer_in_part(raw, why_cut or str(error), most=most)
    else:
        if isinstance(message, list):
            # A batch, as one version of the protocol had it.
            message = _answer_of(message, call_id)
        if isinstance(message, dict) and "method" in message:
            return _bytes(message)
        answer = answer_in(message)
    named = answer.id if call_id is None else call_id
    is_other = answer.id is not None and str(answer.id) != str(named)
    if answer.verdict is Verdict.UNKNOWN or named is None or is_other:
        return None
    if answer.verdict is Verdict.REFUSED:
        return own_error(Proof.REFUSED, answer.words, call_id=named, code=answer.code, data=answer.data)
    # The library takes nothing but an object; what another value stands for is in `fitted_result`.
    result = answer.result if isinstance(answer.result, dict) else {"content": answer.result}
    return _bytes({"jsonrpc": "2.0", "id": named, "result": bounded_result(result, most=most)})


def _answer_of(batch: list[Any], call_id: Any) -> Any:
    """Return what a batch says of a call, else its first answer; None: it has none."""
    answers = [one for one in batch if answer_in(one).verdict is not Verdict.UNKNOWN]
    return next((one for one in answers if str(answer_in(one).id) == str(call_id)), answers[0] if answers else None)


def own_error(proof: Proof, words: str, *, call_id: Any = None, code: int = INTERNAL_ERROR, data: Any = None) -> bytes:
    """Return an error answer as the library reads it, marked with what it proves."""
    more = {name: value for name, value in data.items() if name != MARK} if isinstance(data, dict) else {}
    error = {"code": code or INTERNAL_ERROR, "message": words, "data": {**more, MARK: proof}}
    return _bytes({"jsonrpc": "2.0", "id": call_id, "error": error})


def _bytes(message: Any) -> bytes:
    return whole_characters(json.dumps(message, ensure_ascii=False, separators=(",", ":"))).encode()
