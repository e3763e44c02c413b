"""Words that are sent as they are written: what was sent of the call under way, and what is left to send."""

from __future__ import annotations

from collections.abc import Iterator

from wayline.contracts.events import Event, ModelCompleted, ModelFailed
from wayline.contracts.jobs import Delta
from wayline.gateway.openai.chat_answer import Chunks

BETWEEN = "\n\n"
"""Between the words of two calls."""


class EagerText:
    """Sends the words of each call as they come. What a call that failed had sent stays, and is said to be void."""

    def __init__(self) -> None:
        self._call = (0, 0)
        self._sent = ""
        """Of the call under way, or of the last one."""
        self._any = False

    def hear(self, item: Event | Delta, chunks: Chunks) -> Iterator[bytes]:
        """Yield the chunks that an event or a delta makes."""
        if isinstance(item, Delta) and item.text:
            if self._misses_some(item):
                return
            yield from self._say((item.step, item.attempt), item.text, chunks)
        elif isinstance(item, ModelCompleted):
            call = (item.step, item.attempt)
            sent = self._sent if call == self._call else ""
            if item.message.text.startswith(sent) and len(item.message.text) > len(sent):
                yield from self._say(call, item.message.text[len(sent) :], chunks)
        elif isinstance(item, ModelFailed) and self._sent and (item.step, item.attempt) == self._call:
            yield chunks.retracted(len(self._sent))
            self._sent = ""

    def _misses_some(self, item: Delta) -> bool:
        """Return whether a piece follows words that were not heard here: what is whole is sent once it is settled."""
        heard = len(self._sent) if (item.step, item.attempt) == self._call else 0
        return item.offset is not None and item.offset != heard

    def rest(self, answer: str) -> str:
        """Return what is left to send of a job's answer."""
        if answer == self._sent:
            return ""
        if self._sent and answer.startswith(self._sent):
            return answer[len(self._sent) :]
        return f"{BETWEEN}{answer}" if self._any else answer

    def _say(self, call: tuple[int, int], text: str, chunks: Chunks) -> Iterator[bytes]:
        if call != self._call:
            between = BETWEEN if self._any else ""
            self._call, self._sent = call, ""
            yield from chunks.text(between)
        self._sent += text
        self._any = True
        yield from chunks.text(text)
