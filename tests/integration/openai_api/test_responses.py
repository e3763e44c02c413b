"""Responses and embeddings over real HTTP, asked by the official OpenAI client."""

from __future__ import annotations

import base64
from array import array

import openai
import openresponses_types
import orjson
import pytest
from openai.types.responses import ResponseStreamEvent
from pydantic import BaseModel, TypeAdapter

from wayline.simulator.chat_server import Say
from wayline.testkit import until

from .conftest import AGENT, EMBEDS, Doors, held

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

EVENT: TypeAdapter[ResponseStreamEvent] = TypeAdapter(ResponseStreamEvent)
WEATHER = {
    "type": "function",
    "name": "weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    "strict": False,
}
BOTH = (("weather", {"city": "Bonn"}), ("weather", {"city": "Rome"}))
FORM = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


async def test_a_response_goes_on_with_the_one_before(doors: Doors):
    async with doors.client() as client:
        first = await client.responses.create(model=AGENT, input="My name is Ada.", instructions="Be kind.")
        doors.answers("Ada.")
        second = await client.responses.create(model=AGENT, input="Who am I?", previous_response_id=first.id)
        read = await client.responses.retrieve(second.id)

    assert (first.status, first.output_text, second.output_text) == ("completed", "Yes.", "Ada.")
    assert second.previous_response_id == first.id and first.conversation == second.conversation is not None
    assert (read.id, read.status, read.output_text) == (second.id, "completed", "Ada.")
    told = str(doors.messages())
    assert "My name is Ada." in told and "Be kind." in told and "Who am I?" in told
    assert second.usage and second.usage.total_tokens == second.usage.input_tokens + second.usage.output_tokens > 0


async def test_a_conversation_that_is_brought_along_is_its_history(doors: Doors):
    said = [
        {"role": "user", "content": [{"type": "input_text", "text": "My name is Ada."}]},
        {"role": "assistant", "content": [{"type": "output_text", "text": "Hello Ada."}]},
        {"role": "user", "content": "Who am I?"},
    ]
    async with doors.client() as client:
        answer = await client.responses.create(model=AGENT, input=said, text={"format": {"type": "text"}})
        assert [message["role"] for message in doors.messages()][-3:] == ["user", "assistant", "user"]
        doors.answers("Still Ada.")
        second = await client.responses.create(model=AGENT, input="And now?", previous_response_id=answer.id)
        third = await client.responses.create(model=AGENT, input="Again?", previous_response_id=second.id)

    told = [message["content"] for message in doors.messages() if message["role"] in ("user", "assistant")]
    words = ["My name is Ada.", "Hello Ada.", "Who am I?", "Yes.", "And now?", "Still Ada.", "Again?"]
    assert [next(word for word in words if word in str(one)) for one in told] == words
    assert third.previous_response_id == second.id and third.conversation is None


async def test_a_cut_stream_goes_on_with_the_same_events(doors: Doors):
    doors.answers("One two three.")

    async with doors.client() as client:
        stream = await client.responses.create(model=AGENT, input="Is it so?", stream=True)
        events = [event async for event in stream]
        assert events[0].type == "response.created"
        job = events[0].response.id
        rests = [
            [event async for event in await client.responses.retrieve(job, stream=True, starting_after=cut)]
            for cut in range(len(events))
        ]

    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert events[-1].type == "response.completed" and events[-1].response.output_text == "One two three."
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == "One two three."
    assert rests == [events[cut + 1 :] for cut in range(len(events))]
    for event in events:
        EVENT.validate_python(event.model_dump(warnings=False), strict=False)


async def test_a_response_in_the_background_is_read_later_or_cancelled(doors: Doors):
    release, say = held()
    doors.answers(say)

    async with doors.client() as client:
        begun = await client.responses.create(model=AGENT, input="Take your time.", background=True)
        other = await client.responses.create(model=AGENT, input="Stop this.", background=True)
        await client.responses.cancel(other.id)

        async def status(response_id: str) -> str | None:
            return (await client.responses.retrieve(response_id)).status

        async def cancelled() -> bool:
            return await status(other.id) == "cancelled"

        await until(cancelled, why="the response is cancelled")
        release.set()

        async def completed() -> bool:
            return await status(begun.id) == "completed"

        await until(completed, why="the response is completed")

    assert begun.status == "queued" and begun.background


async def test_what_a_response_cannot_be_is_refused_by_name(doors: Doors):
    async with doors.client() as client:
        with pytest.raises(openai.BadRequestError) as stored:
            await client.responses.create(model=AGENT, input="Yes?", store=False)
        with pytest.raises(openai.BadRequestError) as tools:
            await client.responses.create(model=AGENT, input="Yes?", tools=[{"type": "web_search"}])
        with pytest.raises(openai.NotFoundError):
            await client.responses.retrieve("resp_nothing")

        with pytest.raises(openai.BadRequestError) as included:
            await client.responses.create(model=AGENT, input="Yes?", include=["message.output_text.logprobs"])
        # Agents' clients ask for thinking that they could send again; no answer here has any.
        taken = await client.responses.create(model=AGENT, input="Yes?", include=["reasoning.encrypted_content"])

    assert (stored.value.param, tools.value.param, included.value.param) == ("store", "tools.0.type", "include")
    assert taken.status == "completed"


async def test_a_response_fits_its_schema_or_has_failed(doors: Doors):
    form = {"format": {"type": "json_schema", "name": "n", "schema": FORM}}
    doors.answers('{"n": 7}')

    async with doors.client() as client:
        answer = await client.responses.create(model=AGENT, input="How many?", text=form)
        doors.answers("none")
        failed = await client.responses.create(model=AGENT, input="How many?", text=form)

    assert orjson.loads(answer.output_text) == {"n": 7}
    assert failed.status == "failed" and failed.error and "invalid_output" in failed.error.message


async def test_a_resent_response_is_the_same_job(doors: Doors):
    body = {"model": AGENT, "input": "Once."}

    first = await doors.http.post("/openai/v1/responses", json=body)
    again = await doors.http.post("/openai/v1/responses", json=body, headers={"x-stainless-retry-count": "2"})

    assert first.json()["id"] == again.json()["id"] and len(doors.chat.calls) == 1


async def test_an_image_reaches_the_model_once_stored(doors: Doors):
    from wayline.testkit.media import png

    url = f"data:image/png;base64,{base64.b64encode(png(8, 8)).decode()}"
    part = {"type": "image_url", "image_url": {"url": url}}

    async with doors.client() as client:
        for _ in range(2):
            await client.chat.completions.create(
                model=AGENT, messages=[{"role": "user", "content": [part, {"type": "text", "text": "What is it?"}]}]
            )
    listed = (await doors.http.get("/v1/documents")).json()["documents"]

    assert "data:image/png;base64," in str(doors.messages())
    assert len([one for one in listed if one["document_id"].startswith("sent-")]) == 1


async def test_texts_are_embedded_as_floats_or_base64(doors: Doors):
    async with doors.client() as client:
        found = await client.embeddings.create(model="any", input=["high tide", "low tide"], encoding_format="float")
        packed = await client.embeddings.create(model="any", input="high tide", encoding_format="base64")
        short = await client.embeddings.create(model="any", input="high tide", dimensions=8, encoding_format="float")
        with pytest.raises(openai.BadRequestError) as long:
            await client.embeddings.create(model="any", input="high tide", dimensions=100_000)

    assert found.model == EMBEDS and [one.index for one in found.data] == [0, 1]
    assert array("f", base64.b64decode(str(packed.data[0].embedding))).tolist() == found.data[0].embedding
    assert len(short.data[0].embedding) == 8 and sum(v * v for v in short.data[0].embedding) == pytest.approx(
        1, abs=1e-5
    )
    assert found.usage.prompt_tokens > 0 and long.value.param == "dimensions"


async def test_a_parked_response_says_where_to_decide(doors: Doors):
    await doors.save("wary", tools=("get_current_time",), ask="always", ask_tools={"get_current_time": "always"})
    doors.answers(Say(tools=(("get_current_time", {}),)), "Done.")

    async with doors.client() as client:
        answer = await client.responses.create(model="wary", input="What time is it?")

    assert answer.status == "completed" and "/approvals/" in answer.output_text


def open_responses_type(kind: str) -> type[BaseModel]:
    """Return the class of an event by its type."""
    classes = (one for name, one in vars(openresponses_types).items() if name.endswith("StreamingEvent"))
    return next(one for one in classes if f"`{kind}`" in str(one.model_fields["type"]))


@pytest.mark.parametrize(
    ("said", "end"),
    [("One two three.", "completed"), ("no JSON", "failed"), (Say(text="Let me see.", tools=BOTH), "completed")],
    ids=["answered", "failed", "calls"],
)
async def test_every_event_fits_the_types_of_open_responses(said: str | Say, end: str, doors: Doors):
    doors.answers(said)
    form = {"format": {"type": "json_schema", "name": "n", "schema": FORM}} if end == "failed" else None

    body = {"model": AGENT, "input": "Is it so?", "stream": True, "text": form, "tools": [WEATHER]}
    sent = await doors.http.post("/openai/v1/responses", json=body)
    events = [orjson.loads(line[6:]) for line in sent.text.splitlines() if line.startswith("data: ")]
    read = await doors.http.get(f"/openai/v1/responses/{events[-1]['response']['id']}")

    for event in events:
        open_responses_type(event["type"]).model_validate(event)
    openresponses_types.ResponseResource.model_validate(read.json())
    assert events[-1]["type"] == f"response.{end}" and "[DONE]" not in sent.text


async def test_outputs_of_function_calls_go_on_in_the_same_job(doors: Doors):
    doors.answers(Say(text="Let me see.", tools=BOTH), "Both are wet.", "You are welcome.")

    async with doors.client() as client:
        first = await client.responses.create(model=AGENT, input="Shall I?", tools=[WEATHER])
        calls = [item for item in first.output if item.type == "function_call"]
        outputs = [{"type": "function_call_output", "call_id": one.call_id, "output": "wet"} for one in calls]
        with pytest.raises(openai.BadRequestError) as unanswered:
            await client.responses.create(model=AGENT, input="Well?", previous_response_id=first.id)
        second = await client.responses.create(
            model=AGENT, input=outputs, previous_response_id=first.id, tools=[WEATHER]
        )
        third = await client.responses.create(model=AGENT, input="Thanks.", previous_response_id=second.id)
        read = [await client.responses.retrieve(one.id) for one in (first, second)]
        with pytest.raises(openai.NotFoundError):
            await client.responses.retrieve(f"{first.id}.3")

    assert [item.type for item in first.output] == ["message", "function_call", "function_call"]
    assert [orjson.loads(one.arguments) for one in calls] == [{"city": "Bonn"}, {"city": "Rome"}]
    assert (first.status, first.output_text, second.output_text) == ("completed", "Let me see.", "Both are wet.")
    assert second.id == f"{first.id}.2" and third.output_text == "You are welcome."
    assert unanswered.value.code == "missing_result"
    assert [one.output for one in read] == [first.output, second.output]
    assert len(doors.chat.calls) == 3


async def test_function_calls_are_streamed_and_cut_streams_go_on(doors: Doors):
    doors.answers(Say(text="Let me see.", tools=BOTH), "Both are wet.")

    async with doors.client() as client:
        stream = await client.responses.create(model=AGENT, input="Shall I?", tools=[WEATHER], stream=True)
        first = [event async for event in stream]
        calls = [item for item in first[-1].response.output if item.type == "function_call"]
        outputs = [{"type": "function_call_output", "call_id": one.call_id, "output": "wet"} for one in calls]
        # As clients send it that keep the conversation themselves: with references to what was said before.
        named = [{"type": "item_reference", "id": item.id} for item in first[-1].response.output]
        said = [{"role": "user", "content": "Shall I?"}, *named, *outputs]
        stream = await client.responses.create(model=AGENT, input=said, tools=[WEATHER], stream=True)
        second = [event async for event in stream]
        rests = []
        for events in (first, second):
            answer = events[0].response.id
            rests.append(
                [
                    [event async for event in await client.responses.retrieve(answer, stream=True, starting_after=cut)]
                    for cut in range(len(events))
                ]
            )
        again = [*said, {"type": "item_reference", "id": second[-1].response.output[0].id}]
        third = await client.responses.create(model=AGENT, input=[*again, {"role": "user", "content": "Thanks."}])

    for events, rest in zip((first, second), rests, strict=True):
        assert [event.sequence_number for event in events] == list(range(len(events)))
        assert rest == [events[cut + 1 :] for cut in range(len(events))]
        for event in events:
            body = event.model_dump(warnings=False)
            EVENT.validate_python(body, strict=False)
    kinds = [event.type for event in first if "arguments" in event.type]
    assert kinds == ["response.function_call_arguments.delta", "response.function_call_arguments.done"] * 2
    assert [event.output_index for event in first if "arguments" in event.type] == [1, 1, 2, 2]
    assert second[-1].response.output_text == "Both are wet." and third.status == "completed"
    told = str(doors.messages())
    assert "Shall I?" in told and "wet" in told and "Both are wet." in told


async def test_a_deleted_response_is_forgotten(doors: Doors):
    async with doors.client() as client:
        made = await client.responses.create(model=AGENT, input="Forget this.")
        deleted = await client.responses.with_raw_response.delete(made.id)
        with pytest.raises(openai.NotFoundError):
            await client.responses.delete("resp_nothing")

    receipt = (await doors.http.get(deleted.headers["location"])).json()
    assert made.id.removeprefix("resp_") in str(receipt)
