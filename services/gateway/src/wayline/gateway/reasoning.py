"""What of a model's thinking a job's events show: nothing, unless its agent or its tenant's settings say so."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any

from wayline.contracts.chat import AssistantMessage
from wayline.contracts.events import Event, JobForked, JobRouted, ModelCompleted
from wayline.journal import News, ProgressNews


class ReasoningView:
    """Shows a job's events as its first record says: what was decided there holds for the whole job."""

    def __init__(self, first: list[Event]) -> None:
        """Read the first record, where the events that are shown do not begin with it."""
        self._shown = False
        for event in first:
            self._learn(event)

    def _learn(self, event: Event) -> None:
        if isinstance(event, JobRouted):
            self._shown = event.config.show_reasoning

    def of(self, event: Event) -> Event:
        """Return an event as it is shown."""
        self._learn(event)
        if self._shown:
            return event
        if isinstance(event, ModelCompleted):
            message = _without(event.message)
            return event if message is event.message else event.model_copy(update={"message": message})
        if isinstance(event, JobForked):
            return event.model_copy(update={"prefix": tuple(map(_value_without, event.prefix))})
        return event

    async def listed(self, events: AsyncIterator[Event]) -> AsyncIterator[Event]:
        """Yield a log's events as they are shown."""
        async for event in events:
            yield self.of(event)

    async def followed(self, feed: News | ProgressNews) -> AsyncGenerator[Any, None]:
        """Yield a followed job's events as they are shown, with what comes between them."""
        async with aclosing(feed) as news:
            async for item in news:
                yield self.of(item) if isinstance(item, Event) else item


def _without(message: AssistantMessage) -> AssistantMessage:
    """Return a message without its thinking, and without its provider's own blocks, which say it once more."""
    if not message.thinking and message.verbatim is None:
        return message
    return message.model_copy(update={"thinking": "", "verbatim": None})


def _value_without(value: dict[str, Any]) -> dict[str, Any]:
    if value["type"] != "model.completed":
        return value
    return value | {"message": value["message"] | {"thinking": "", "verbatim": None}}
