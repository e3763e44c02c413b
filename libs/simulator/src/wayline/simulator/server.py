"""The simulated providers: one HTTP server on the loopback, for tests and for trying things out."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from aiohttp import web

from wayline.contracts.money import Usage
from wayline.simulator.bill import Bill, Charge, Outcome, price
from wayline.simulator.listing import Listing
from wayline.simulator.models import Facts, known
from wayline.simulator.prompt.cache import AnthropicCache, Clock, OpenAICache, Plan
from wayline.simulator.refusals import Refusal, broken, too_large, unknown_model
from wayline.simulator.request import Envelope
from wayline.simulator.scripts.fault_choices import Faults, no_faults
from wayline.simulator.scripts.faults import NO_FAULT, Fault
from wayline.simulator.scripts.protocol import understood
from wayline.simulator.scripts.rules import by_rules
from wayline.simulator.scripts.script import Asked, Say, Script
from wayline.simulator.transport import check_key, headers, json_of, owner, refused, verified
from wayline.simulator.wires import messages
from wayline.simulator.wires.formats import CHAT, EMBEDDINGS, MESSAGES, RESPONSES, Format, frames_of
from wayline.simulator.wires.replies import Prompt, Reply, compose
from wayline.simulator.wires.writing import Meter, Writer

ATTEMPT_HEADER = "X-Wayline-Attempt"
BODY_BYTES_MAX = 64 * 1024 * 1024
MESSAGES_BODY_BYTES_MAX = 32 * 1024 * 1024
REQUESTS_MAX = 10_000
"""How many of the last requests are remembered."""
STOP_GRACE_S = 0.2
"""How long requests in flight may still take when the simulator is closed."""

Read = Callable[[Mapping[str, Any], Facts, Envelope], Prompt]


class ManualClock:
    """Time that passes only when it is told to."""

    def __init__(self) -> None:
        self.now_s = 1_795_000_000.0

    def __call__(self) -> float:
        return self.now_s

    def advance(self, seconds: float) -> None:
        self.now_s += seconds


class Simulator:
    """Serves all wire formats at once; what it is asked and what it charges stays here to be read."""

    def __init__(
        self,
        script: Script = by_rules,
        *,
        faults: Faults = no_faults,
        clock: Clock | None = None,
        models: Mapping[str, Facts] | None = None,
        port: int = 0,
    ) -> None:
        self.script = script
        self.faults = faults
        self.clock = clock or ManualClock()
        self.models = {**known(), **(models or {})}
        self.bill = Bill()
        self.requests: list[Asked] = []
        """Those that were accepted, as scripts see them."""
        self.port = port
        self._count = 0
        self._anthropic = AnthropicCache(self.clock)
        self._openai = OpenAICache(self.clock)

    async def __aenter__(self) -> Simulator:
        app = web.Application(client_max_size=BODY_BYTES_MAX)
        for path, form in (
            ("/v1/messages", MESSAGES),
            ("/v1/responses", RESPONSES),
            ("/v1/chat/completions", CHAT),
            ("/v1beta/openai/chat/completions", CHAT),
            ("/v1/embeddings", EMBEDDINGS),
        ):
            app.router.add_post(path, functools.partial(self._serve, form))
        app.router.add_post("/v1/messages/count_tokens", self._count_tokens)
        listing = Listing(self.models)
        app.router.add_get("/v1/models", listing.all)
        app.router.add_get("/v1/models/{name}", listing.one)
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=STOP_GRACE_S)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    def play(self, script: Script, *, faults: Faults = no_faults) -> None:
        """Answer by another script from now on; what was asked and charged before is forgotten, not what is cached."""
        self.script, self.faults = script, faults
        self.requests.clear()
        self.bill = Bill()

    @property
    def url(self) -> str:
        """Return Anthropic's base URL; OpenAI's and that of compatible endpoints is `openai_url`."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def openai_url(self) -> str:
        return f"{self.url}/v1"

    @property
    def google_url(self) -> str:
        """Return Google's base URL for Chat Completions."""
        return f"{self.url}/v1beta/openai"

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables that point Wayline, and both SDKs, here."""
        return {
            "ANTHROPIC_BASE_URL": self.url,
            "ANTHROPIC_API_KEY": "simulated",
            "OPENAI_BASE_URL": self.openai_url,
            "OPENAI_API_KEY": "simulated",
            "WAYLINE_CHAT_BASE_URL": self.openai_url,
        }

    async def _serve(self, form: Format, request: web.Request) -> web.StreamResponse:
        """Answer one request, or refuse it; either way it is on the bill."""
        self._count += 1
        envelope = Envelope(self._count, request.headers.get(ATTEMPT_HEADER, ""), owner(request), verified(request))
        model = ""
        try:
            if form is MESSAGES and (request.content_length or 0) > MESSAGES_BODY_BYTES_MAX:
                raise too_large()
            body = await json_of(request)
            model = str(body.get("model"))
            prompt = self._read(request, form, form.read, body, envelope)
            self.requests.append(prompt.asked)
            del self.requests[:-REQUESTS_MAX]
            say, fault = await self._say(prompt.asked)
            # What is in the cache counts at this moment, however long the answer takes to begin.
            plan = self._plan(prompt, envelope)
            await self._wait(envelope, form, model, fault)
        except Refusal as refusal:
            self._charge(envelope, form, model, Usage(), "refused", status=refusal.status)
            return refused(refusal, form.wire, envelope.number)
        reply = compose(prompt, say, plan, fault=fault, at_s=int(self.clock()))
        return await self._answer(request, form, envelope, reply)

    async def _count_tokens(self, request: web.Request) -> web.StreamResponse:
        """Answer Anthropic's count of a prompt: free, and not on the bill."""
        try:
            read = functools.partial(messages.read, counting=True)
            prompt = self._read(request, MESSAGES, read, await json_of(request), Envelope(0, "", ""))
        except Refusal as refusal:
            return refused(refusal, "anthropic", 0)
        return web.json_response({"input_tokens": sum(block.tokens for block in prompt.blocks)})

    def _read(
        self, request: web.Request, form: Format, read: Read, body: Mapping[str, Any], envelope: Envelope
    ) -> Prompt:
        facts = self._facts(request, form, body.get("model"))
        try:
            prompt = read(body, facts, envelope)
        except (AttributeError, KeyError, TypeError, ValueError, IndexError) as error:
            raise Refusal(f"The request cannot be read: {type(error).__name__}: {error}") from error
        return replace(prompt, asked=understood(prompt.asked))

    def _facts(self, request: web.Request, form: Format, model: object) -> Facts:
        facts = self.models.get(model) if isinstance(model, str) else None
        if facts is None or facts.provider != "local":
            check_key(request, form.wire)
        embeds = facts is not None and facts.dimensions is not None
        if facts is None or facts.provider not in form.providers or embeds != (form is EMBEDDINGS):
            raise unknown_model(form.wire, model)
        return facts

    async def _say(self, asked: Asked) -> tuple[Say, Fault]:
        fault = self.faults(asked)
        if asked.wire == "embeddings":
            return Say(output_tokens=0), fault
        scripted = self.script(asked)
        say = await scripted if inspect.isawaitable(scripted) else scripted
        return say, say.fault if say.fault is not NO_FAULT else fault

    def _plan(self, prompt: Prompt, envelope: Envelope) -> Plan:
        facts = prompt.facts
        owner = f"{envelope.owner}|{facts.name}"
        if facts.provider == "anthropic":
            return self._anthropic.look(
                prompt.blocks, owner=owner, min_tokens=facts.cache_min_tokens, settings=prompt.settings
            )
        if facts.provider == "openai" and facts.dimensions is None:
            return self._openai.look(
                prompt.blocks,
                owner=f"{owner}|{prompt.cache_key}",
                implicit=prompt.implicit_cache,
                ttl=prompt.cache_ttl,
            )
        return Plan(input=sum(block.tokens for block in prompt.blocks))

    async def _wait(self, envelope: Envelope, form: Format, model: str, fault: Fault) -> None:
        """Do what the fault wants before the answer begins. Raises Refusal when that is an error."""
        try:
            await asyncio.sleep(fault.latency_s)
            if fault.hold is not None and fault.hold_at == "start":
                await fault.hold.wait()
        except asyncio.CancelledError:
            self._charge(envelope, form, model, Usage(), "aborted")
            raise
        if fault.error is not None:
            raise broken(fault, form.wire)

    async def _answer(self, request: web.Request, form: Format, envelope: Envelope, reply: Reply) -> web.StreamResponse:
        """Begin, write and settle."""
        streamed = reply.prompt.asked.stream
        response = web.StreamResponse(headers=headers(form.wire, envelope.number, streamed=streamed))
        trouble = form.trouble(envelope.number) if streamed else None
        meter = Meter(reply.usage.output)
        outcome: Outcome = "aborted"
        used = Usage()
        try:
            await response.prepare(request)
            # From here on it is charged for. A whole body was thought through before its first byte; a stream was not.
            used = reply.usage
            (self._anthropic if form is MESSAGES else self._openai).begin(reply.plan)
            outcome = await Writer(request, response, reply.fault).write(frames_of(form, reply), meter, trouble=trouble)
            if outcome == "answered" and reply.failed:
                outcome = "failed"
        finally:
            if streamed and outcome != "answered" and not meter.usage_delivered:
                used = used.model_copy(
                    update={"output": meter.tokens, "reasoning": min(meter.tokens, reply.usage.reasoning)}
                )
            model = reply.prompt.facts.name
            self._charge(envelope, form, model, used, outcome, delivered=meter.usage_delivered)
        return response

    def _charge(
        self,
        envelope: Envelope,
        form: Format,
        model: str,
        usage: Usage,
        outcome: Outcome,
        *,
        status: int = 200,
        delivered: bool = False,
    ) -> None:
        facts = self.models.get(model)
        charge = Charge(
            number=envelope.number,
            attempt=envelope.attempt,
            wire=form.wire,
            provider=facts.provider if facts else "",
            model=model,
            usage=usage,
            usd=price(facts, usage) if facts else Decimal(0),
            outcome=outcome,
            usage_delivered=delivered,
            status=status,
        )
        self.bill.add(charge)
