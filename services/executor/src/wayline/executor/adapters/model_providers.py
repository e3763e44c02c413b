"""The providers of models, called on behalf of a held job."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any

from nats import errors as nats_errors

from wayline.chassis import Bus
from wayline.contracts.jobs import Delta
from wayline.contracts.money import Usage
from wayline.journal import Job
from wayline.llm import Finished, Model, ModelError, ModelRequest, TextDelta, UsageSeen
from wayline.llm.json_protocol import JsonProtocol

DELTA_S = 0.05
"""Text goes out in pieces of this many seconds: about twenty a second, however fast a model writes."""
ERROR_MAX_CHARS = 1_000
"""Of a provider's words in the log."""
SECRET_MIN_CHARS = 8
"""Shorter keys are placeholders for local servers."""
HIDDEN = "(a key)"


@dataclass(slots=True)
class CallProgress:
    """What has come of a model call so far: all that is known of it if it never ends."""

    chars: int = 0
    """Sent on as deltas."""
    bytes: int = 0
    """Of text, sent on or not."""
    usage: Usage | None = None
    first_token_ms: float | None = None
    pieces: list[str] = field(default_factory=list)
    """The text itself: what there is of an answer whose job runs out of time."""
    _since: float = field(default_factory=time.perf_counter)

    @property
    def ms(self) -> float:
        """Return the milliseconds since the call began."""
        return (time.perf_counter() - self._since) * 1_000

    def hear(self, text: str) -> None:
        """Count a piece of text."""
        self.first_token_ms = self.first_token_ms or self.ms
        self.bytes += len(text.encode())
        self.pieces.append(text)


async def unheard() -> None:
    """Ignore the first word of a model: nobody waits for it."""


class ModelProviders:
    """The providers this executor can call."""

    def __init__(self, bus: Bus, providers: Mapping[str, Model], *, secrets: Collection[str] = ()) -> None:
        self._bus = bus
        self._providers = providers
        self._secrets = secrets
        """What no error may say: some providers quote the key they refuse."""

    def call(
        self,
        job: Job,
        request: ModelRequest,
        progress: CallProgress,
        *,
        answering: Callable[[], Awaitable[None]] = unheard,
    ) -> Coroutine[Any, Any, Finished]:
        """Ask the job's model and stream what it writes as deltas; say `answering` once it does. Raises ModelError."""
        return self._ask(request, progress, _Deltas(self._bus, job, progress), answering=answering)

    def ask_aside(
        self, request: ModelRequest, progress: CallProgress, *, answering: Callable[[], Awaitable[None]] = unheard
    ) -> Coroutine[Any, Any, Finished]:
        """Ask a model beside the conversation: nobody is shown what it writes. Raises ModelError."""
        return self._ask(request, progress, None, answering=answering)

    async def _ask(
        self,
        request: ModelRequest,
        progress: CallProgress,
        deltas: _Deltas | None,
        *,
        answering: Callable[[], Awaitable[None]],
    ) -> Finished:
        began, finished = False, None
        try:
            async with aclosing(self._model(request, aside=deltas is None).stream(request)) as pieces:
                async for piece in pieces:
                    if not began:
                        began = True
                        await answering()
                    if isinstance(piece, Finished):
                        finished = piece
                    elif isinstance(piece, TextDelta):
                        progress.hear(piece.text)
                        if deltas is not None:
                            await deltas.add(piece.text)
                    elif isinstance(piece, UsageSeen):
                        progress.usage = piece.usage
        except ModelError as error:
            error.args = (without(self._secrets, str(error))[:ERROR_MAX_CHARS],)
            raise
        if deltas is not None:
            await deltas.flush()
        if finished is None:
            raise ModelError("stream_cut", "the model's stream ended without a message", retryable=True, billable=True)
        return finished

    def _model(self, request: ModelRequest, *, aside: bool) -> Model:
        provider = self._providers.get(request.card.provider)
        if provider is None:
            known = ", ".join(sorted(self._providers))
            raise ModelError(
                "unknown_provider", f"no provider {request.card.provider!r} here; there is {known}", retryable=False
            )
        # The protocol is for tools and for answers to a user: a question beside the conversation has neither.
        return JsonProtocol(provider) if request.card.tools == "json" and not aside else provider

    async def close(self) -> None:
        for provider in self._providers.values():
            await provider.close()


def without(secrets: Collection[str], text: str) -> str:
    """Return a text without secrets, and without the beginning of one at its end, where it was cut."""
    for secret in secrets:
        if len(secret) < SECRET_MIN_CHARS:
            continue
        text = text.replace(secret, HIDDEN)
        lengths = range(len(secret) - 1, SECRET_MIN_CHARS - 1, -1)
        begun = next((n for n in lengths if text.endswith(secret[:n])), 0)
        text = text[:-begun] + HIDDEN if begun else text
    return text


class _Deltas:
    """Coalesces text pieces into core messages; they are for eyes only, never stored, never waited for."""

    def __init__(self, bus: Bus, job: Job, progress: CallProgress) -> None:
        self._bus = bus
        self._job = job
        self._heard = progress
        self._held: list[str] = []
        self._sent_at = time.perf_counter()

    async def add(self, text: str) -> None:
        self._held.append(text)
        if time.perf_counter() - self._sent_at >= DELTA_S:
            await self.flush()

    async def flush(self) -> None:
        if self._held:
            text, self._held = "".join(self._held), []
            # Counted first: what may have gone out has to be taken back.
            offset = self._heard.chars
            self._heard.chars += len(text)
            job = self._job
            address = {"tenant": job.tenant, "job_id": job.job_id, "step": job.model.step, "attempt": job.model.attempt}
            # A bus that is away for long takes no more: the call is paid for and goes on unseen.
            with suppress(nats_errors.Error):
                await self._bus.send(Delta(**address, text=text, offset=offset))
        self._sent_at = time.perf_counter()
