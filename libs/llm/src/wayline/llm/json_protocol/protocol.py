"""A model without native tools behind the same protocol as all others."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace

from wayline.contracts.chat import AssistantMessage
from wayline.llm import media
from wayline.llm.json_protocol.ladder import needs_correction, read
from wayline.llm.json_protocol.spoken import Spoken
from wayline.llm.json_protocol.wording import instruction, rendered, with_definitions
from wayline.llm.model import File, Finished, Model, ModelRequest, Piece, StopReason, TextDelta
from wayline.llm.stops import WHOLE


class JsonProtocol:
    """Asks in words for tools and answers as JSON, and reads what comes; the caller may ask for a correction."""

    def __init__(self, model: Model) -> None:
        self._model = model

    async def close(self) -> None:
        await self._model.close()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Piece]:
        spoken = Spoken()
        async for piece in self._model.stream(in_words(request)):
            if isinstance(piece, TextDelta):
                text = spoken.add(piece.text)
                if text:
                    yield TextDelta(text)
            elif isinstance(piece, Finished):
                finished = understood(piece, request)
                rest = "" if _to_be_corrected(finished.message, request) else spoken.rest(finished.message.text)
                if rest:
                    yield TextDelta(rest)
                yield finished
            else:
                yield piece


def in_words(request: ModelRequest) -> ModelRequest:
    """Return the request for a model that only knows text."""
    told = instruction(request.tools, output_schema=request.output_schema)
    images = media.returned(request.card, request.messages, request.attachments)
    shown = {
        image.sha256: File(image.sha256, image.media_type, image.content_base64)
        for sent in images.values()
        for image in sent
    }
    return replace(
        request,
        system=f"{request.system}\n\n{told}".lstrip(),
        messages=tuple(with_definitions(rendered(request.messages, images), request.tools)),
        files={**request.files, **shown} if shown else request.files,
        tools=(),
        output_schema=None,
    )


def understood(finished: Finished, request: ModelRequest) -> Finished:
    """Return the end of a call with the message that was meant."""
    written = finished.message
    if written.tool_calls:
        # It has native tools after all.
        return finished
    names = frozenset(tool.name for tool in request.tools)
    message = read(written.text, tools=names, cut=finished.stop_reason not in WHOLE)
    if finished.stop_reason == "refused" and message.tool_calls:
        message = message.model_copy(update={"tool_calls": ()})
    if written.thinking and not message.thinking:
        message = message.model_copy(update={"thinking": written.thinking})
    stop: StopReason = "tools" if message.tool_calls and finished.stop_reason == "end" else finished.stop_reason
    return replace(finished, message=message, stop_reason=stop)


def _to_be_corrected(message: AssistantMessage, request: ModelRequest) -> bool:
    return needs_correction(message, [tool.name for tool in request.tools]) is not None
