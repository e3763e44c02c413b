"""The Chat Completions adapter against a real socket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import orjson
import pytest
from aiohttp import web

from wayline.contracts.chat import AssistantMessage, TextPart, ToolCall, ToolMessage, UserMessage
from wayline.contracts.models import ModelCard
from wayline.contracts.money import Usage
from wayline.contracts.tools import ToolDefinition
from wayline.llm import Finished, ModelError, ModelRequest, Piece, TextDelta, UsageSeen
from wayline.llm.openai_chat import ChatCompletions
from wayline.simulator.chat_server import ChatServer, Say

ASKED = UserMessage(parts=(TextPart(text="hi"),))
LOOK = ToolDefinition(name="look", description="Look.", input_schema={"type": "object"})
REQUEST = ModelRequest(
    ModelCard(provider="chat", model="m", tier="standard"), "be brief", (ASKED,), (LOOK,), 50, "acme/j1/1/m1"
)
USAGE = {"prompt_tokens": 9, "completion_tokens": 2}


def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def events(*chunks: dict[str, Any] | str) -> bytes:
    texts = (chunk if isinstance(chunk, str) else orjson.dumps(chunk).decode() for chunk in chunks)
    return "".join(f"data: {text}\n\n" for text in texts).encode()


WELL = events(chunk({"content": "well"}), chunk({}, "stop"), {"choices": [], "usage": USAGE}, "[DONE]")


@dataclass
class Endpoint:
    """Answers every request with the same bytes."""

    body: bytes = WELL
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "text/event-stream"})
    piece_bytes: int = 1 << 20
    after: str = "end"
    """What follows the body: its end, a `cut` connection, or `silence`."""
    refuses: Callable[[dict[str, Any]], dict[str, Any] | None] = lambda asked: None
    """The error object of a 400, by what was asked."""
    asked: list[dict[str, Any]] = field(default_factory=list)

    async def __aenter__(self) -> str:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self._answer)
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        asked = orjson.loads(await request.read())
        self.asked.append(asked)
        error = self.refuses(asked)
        if error is not None:
            return web.json_response({"error": error}, status=400)
        response = web.StreamResponse(status=self.status, headers=self.headers)
        await response.prepare(request)
        for at in range(0, len(self.body), self.piece_bytes):
            await response.write(self.body[at : at + self.piece_bytes])
        if self.after == "silence":
            await asyncio.Event().wait()
        if self.after == "cut" and request.transport is not None:
            request.transport.abort()
        return response


async def ask(url: str, request: ModelRequest = REQUEST, *, silence_max_s: float = 20) -> list[Piece]:
    model = ChatCompletions(url, silence_max_s=silence_max_s)
    try:
        return [piece async for piece in model.stream(request)]
    finally:
        await model.close()


async def failure(url: str, request: ModelRequest = REQUEST, *, silence_max_s: float = 20) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await ask(url, request, silence_max_s=silence_max_s)
    return caught.value


async def test_text_comes_in_pieces_and_then_whole_with_its_usage():
    async with ChatServer(lambda _: Say(text="well hello there")) as chat:
        *deltas, finished = await ask(chat.url)

    assert deltas == [TextDelta("well"), TextDelta(" hello"), TextDelta(" there")]
    assert isinstance(finished, Finished)
    assert finished.message == AssistantMessage(text="well hello there")
    assert finished.usage is not None
    assert (finished.stop_reason, finished.usage.output) == ("end", 3)


async def test_parallel_calls_are_numbered_in_order_and_keep_provider_ids():
    async with ChatServer(lambda _: Say(tools=(("look", {"at": 1}), ("look", {"at": 2})))) as chat:
        [finished] = await ask(chat.url)

    assert isinstance(finished, Finished)
    calls = finished.message.tool_calls
    assert [(call.call, call.tool, call.arguments) for call in calls] == [
        ("1", "look", {"at": 1}),
        ("2", "look", {"at": 2}),
    ]
    assert all(call.provider_id for call in calls)
    assert finished.stop_reason == "tools"


async def test_the_request_carries_the_attempt_the_tools_and_the_whole_history():
    history = (
        ASKED,
        AssistantMessage(tool_calls=(ToolCall(call="1", tool="look", arguments={"at": 1}, provider_id="c9"),)),
        ToolMessage(call="1", tool="look", content="a cat", provider_id="c9"),
    )
    async with ChatServer(lambda _: Say(text="ok")) as chat:
        await ask(chat.url, replace(REQUEST, messages=history))

    [(attempt, body)] = chat.calls
    assert attempt == "acme/j1/1/m1"
    assert [message["role"] for message in body["messages"]] == ["system", "user", "assistant", "tool"]
    assert body["messages"][2]["tool_calls"][0]["id"] == body["messages"][3]["tool_call_id"] == "c9"
    assert body["tools"][0]["function"]["name"] == "look"
    assert body["stream_options"] == {"include_usage": True}


@pytest.mark.parametrize("piece_bytes", [1, 7, 1 << 20])
async def test_any_cut_of_the_bytes_gives_the_same_message(piece_bytes: int):
    async with Endpoint(piece_bytes=piece_bytes) as url:
        assert await ask(url) == [
            TextDelta("well"),
            Finished(AssistantMessage(text="well"), Usage(input=9, output=2), "end"),
        ]


async def test_an_endpoint_that_does_not_stream_is_understood_all_the_same():
    whole = {"choices": [{"index": 0, "message": {"content": "well"}, "finish_reason": "stop"}], "usage": USAGE}
    async with Endpoint(orjson.dumps(whole), headers={"Content-Type": "application/json"}) as url:
        assert await ask(url) == [
            TextDelta("well"),
            Finished(AssistantMessage(text="well"), Usage(input=9, output=2), "end"),
        ]


async def test_usage_before_the_end_is_streamed_at_once():
    counted = {"prompt_tokens": 9, "completion_tokens": 1}
    body = events({**chunk({"content": "we"}), "usage": counted}, chunk({"content": "ll"}))
    async with Endpoint(body, after="cut") as url:
        model, seen = ChatCompletions(url), []
        with pytest.raises(ModelError) as caught:
            async for piece in model.stream(REQUEST):
                seen.append(piece)
        await model.close()

    assert UsageSeen(Usage(input=9, output=1)) in seen
    assert caught.value.code == "stream_cut"


@pytest.mark.parametrize(
    ("say", "code", "retryable"),
    [
        (Say(status=429), "rate_limited", True),
        (Say(status=500), "server_error", True),
        (Say(status=503), "server_error", True),
        (Say(status=529), "overloaded", True),
        (Say(status=400), "invalid_request", False),
        (Say(status=401), "authentication", False),
        (Say(status=403), "authentication", False),
        (Say(status=404), "unknown_model", False),
    ],
)
async def test_a_refusal_has_a_code_a_retry_flag_and_no_cost(say, code, retryable):
    async with ChatServer(lambda _: say) as chat:
        error = await failure(chat.url)

    assert (error.code, error.retryable, error.billable) == (code, retryable, False)


async def test_a_refusal_carries_its_retry_after():
    async with Endpoint(b"{}", status=429, headers={"Retry-After": "7"}) as url:
        assert (await failure(url)).after_s == 7.0


async def test_an_unreachable_endpoint_is_retryable_and_not_billable():
    async with Endpoint() as gone:
        pass
    error = await failure(gone)

    assert (error.code, error.retryable, error.billable) == ("connection", True, False)


@pytest.mark.parametrize("after", ["end", "cut"])
async def test_a_stream_that_breaks_off_is_retryable_and_billable(after: str):
    async with Endpoint(events(chunk({"content": "half a"})), after=after) as url:
        error = await failure(url)

    assert (error.code, error.retryable, error.billable) == ("stream_cut", True, True)


async def test_a_connection_lost_after_the_whole_message_loses_nothing():
    body = events(chunk({"content": "well"}, "stop"), {"choices": [], "usage": USAGE})
    async with Endpoint(body, after="cut") as url:
        *_, finished = await ask(url)

    assert isinstance(finished, Finished)
    assert finished.message.text == "well"


async def test_a_silent_provider_times_out_and_is_billable():
    async with Endpoint(events(chunk({"content": "half a"})), after="silence") as url:
        error = await failure(url, silence_max_s=0.05)

    assert (error.code, error.retryable, error.billable) == ("timeout", True, True)


async def test_an_error_inside_a_stream_ends_it():
    body = events(chunk({"content": "half"})) + b"event: error\n" + events({"error": {"type": "overloaded_error"}})
    async with Endpoint(body) as url:
        error = await failure(url)

    assert (error.code, error.retryable, error.billable) == ("overloaded", True, True)


@pytest.mark.parametrize("line", [b"data: {nonsense\n\n", b'data: {"choices": 5}\n\n'])
async def test_a_body_that_is_no_chat_completion_is_unreadable(line: bytes):
    async with Endpoint(line) as url:
        error = await failure(url)

    assert (error.code, error.billable) == ("unreadable", True)


@pytest.mark.parametrize(
    ("chunks", "after"),
    [
        ([chunk({"content": "well"}, "stop"), "[DONE]"], "end"),
        ([chunk({"content": "well"}, "stop")], "end"),
        ([chunk({"content": "well"}), "[DONE]"], "cut"),
        ([chunk({"content": "well"}, "stop")], "cut"),
    ],
    ids=["told the end", "just ended", "cut after the end was told", "cut before its usage"],
)
async def test_an_answer_without_usage_is_kept_with_unknown_usage(chunks, after):
    async with Endpoint(events(*chunks), after=after) as url:
        *_, finished = await ask(url)

    assert finished == Finished(AssistantMessage(text="well"), None, "end")


async def test_an_endpoints_name_of_the_output_limit_is_remembered():
    wrong = {"message": "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."}
    endpoint = Endpoint(refuses=lambda asked: wrong if "max_tokens" in asked else None)
    async with endpoint as url:
        model = ChatCompletions(url)
        for _ in range(2):
            async for _ in model.stream(REQUEST):
                pass
        await model.close()

    names = [[name for name in asked if name.startswith("max_")] for asked in endpoint.asked]
    assert names == [["max_tokens"], ["max_completion_tokens"], ["max_completion_tokens"]]


async def test_a_limit_refused_by_both_names_is_tried_twice():
    endpoint = Endpoint(refuses=lambda asked: {"message": "max_tokens or max_completion_tokens is too large"})
    async with endpoint as url:
        error = await failure(url)

    assert (error.code, len(endpoint.asked)) == ("invalid_request", 2)


async def test_a_request_changed_on_sending_is_noted():
    async with Endpoint() as url:
        *_, finished = await ask(url, replace(REQUEST, temperature=0.7))

    assert isinstance(finished, Finished)
    assert finished.notes == ("temperature dropped: the model takes none",)
