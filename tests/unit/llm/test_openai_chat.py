"""The Chat Completions adapter against a real socket."""

import pytest

from wayline.contracts.chat import AssistantMessage, TextPart, ToolCall, ToolMessage, UserMessage
from wayline.contracts.models import ModelCard
from wayline.contracts.tools import ToolDefinition
from wayline.llm import Finished, ModelError, ModelRequest, TextDelta
from wayline.llm.openai_chat import ChatCompletions
from wayline.testkit.chat_server import ChatServer, Say

ASKED = UserMessage(parts=(TextPart(text="hi"),))
LOOK = ToolDefinition(name="look", description="Look.", input_schema={"type": "object"})


def request(*messages) -> ModelRequest:
    return ModelRequest(
        ModelCard(provider="chat", model="m", tier="standard"),
        "be brief",
        messages or (ASKED,),
        (LOOK,),
        50,
        "acme/j1/1/m1",
    )


async def stream(chat: ChatServer, *messages) -> list[TextDelta | Finished]:
    model = ChatCompletions(chat.url)
    try:
        return [piece async for piece in model.stream(request(*messages))]
    finally:
        await model.close()


async def test_text_comes_in_pieces_and_then_whole_with_its_usage():
    async with ChatServer(lambda _: Say(text="well hello there")) as chat:
        *deltas, finished = await stream(chat)

    assert [delta.text for delta in deltas] == ["well", " hello", " there"]
    assert finished.message == AssistantMessage(text="well hello there")
    assert (finished.stop_reason, finished.usage.output) == ("end", 3)


async def test_parallel_tool_calls_are_numbered_in_order_and_keep_the_providers_ids():
    async with ChatServer(lambda _: Say(tools=(("look", {"at": 1}), ("look", {"at": 2})))) as chat:
        [finished] = await stream(chat)

    calls = finished.message.tool_calls
    assert [(call.call, call.tool, call.arguments) for call in calls] == [
        ("1", "look", {"at": 1}),
        ("2", "look", {"at": 2}),
    ]
    assert all(call.provider_id for call in calls)


async def test_the_request_carries_the_attempt_the_tools_and_the_whole_history():
    history = (
        ASKED,
        AssistantMessage(tool_calls=(ToolCall(call="1", tool="look", arguments={"at": 1}, provider_id="c9"),)),
        ToolMessage(call="1", tool="look", content="a cat", provider_id="c9"),
    )
    async with ChatServer(lambda _: Say(text="ok")) as chat:
        await stream(chat, *history)

    [(attempt, body)] = chat.calls
    assert attempt == "acme/j1/1/m1"
    assert [message["role"] for message in body["messages"]] == ["system", "user", "assistant", "tool"]
    assert body["messages"][2]["tool_calls"][0]["id"] == body["messages"][3]["tool_call_id"] == "c9"
    assert body["tools"][0]["function"]["name"] == "look"
    assert body["stream_options"] == {"include_usage": True}


@pytest.mark.parametrize(
    ("say", "code", "retryable"),
    [
        (Say(status=429), "http_429", True),
        (Say(status=500), "http_500", True),
        (Say(status=529), "http_529", True),
        (Say(status=400), "http_400", False),
        (Say(status=401), "http_401", False),
        (Say(text="half a", cut=True), "stream_cut", True),
    ],
)
async def test_a_failure_says_what_it_was_and_whether_to_try_again(say, code, retryable):
    async with ChatServer(lambda _: say) as chat:
        with pytest.raises(ModelError) as caught:
            await stream(chat)

    assert (caught.value.code, caught.value.retryable) == (code, retryable)


async def test_an_endpoint_that_is_not_there_may_be_tried_again():
    async with ChatServer(lambda _: Say()) as gone:
        pass
    with pytest.raises(ModelError) as caught:
        await stream(gone)

    assert (caught.value.code, caught.value.retryable) == ("connection", True)
