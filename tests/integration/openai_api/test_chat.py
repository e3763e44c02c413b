"""Chat completions over real HTTP, asked by the official OpenAI client."""

from __future__ import annotations

import asyncio
import base64
from decimal import Decimal

import openai
import orjson
import pytest

from wayline.simulator.chat_server import Say
from wayline.testkit import until
from wayline.testkit.media import png

from .conftest import AGENT, Doors, held

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
ASKS = (("weather", {"city": "Bonn"}),)
QUESTION = [{"role": "user", "content": "Is it so?"}]


async def test_agents_are_listed_as_models(doors: Doors):
    async with doors.client() as client:
        listed = await client.models.list()
        one = await client.models.retrieve(AGENT)
        with pytest.raises(openai.NotFoundError) as unknown:
            await client.models.retrieve("nobody")

    assert {"assistant", AGENT} <= {model.id for model in listed.data}
    assert (one.id, one.object, one.owned_by) == (AGENT, "model", "default")
    assert unknown.value.code == "model_not_found" and unknown.value.param == "model"


async def test_a_label_behind_the_agent_chooses_its_version(doors: Doors):
    for instructions in ("Be brief.", "Be long."):
        await doors.save("labelled", instructions=instructions)
    put = await doors.http.put("/v1/agents/labelled/labels/candidate", json={"version": 1})
    put.raise_for_status()
    async with doors.client() as client:
        listed = {model.id for model in (await client.models.list()).data}
        one = await client.models.retrieve("labelled:candidate")
        raw = await client.chat.completions.with_raw_response.create(model=one.id, messages=QUESTION)
        told = doors.messages()
        response = await client.responses.create(model=one.id, input="Is it so?")
        again = await client.responses.retrieve(response.id)
        for wrong in ("labelled:nothing", "labelled:", "labelled:No Label", "nobody:candidate", "x" * 65, ":candidate"):
            with pytest.raises(openai.NotFoundError) as unknown:
                await client.chat.completions.create(model=wrong, messages=QUESTION)
            assert (unknown.value.code, unknown.value.param) == ("model_not_found", "model")
            with pytest.raises(openai.NotFoundError):
                await client.models.retrieve(wrong)
    job = (await doors.http.get(f"/v1/jobs/{raw.headers['x-wayline-job']}")).json()

    assert {"labelled", "labelled:candidate"} <= listed
    assert (job["agent"], job["agent_version"], job["agent_label"]) == ("labelled", 1, "candidate")
    assert "Be brief." in str(told) and raw.parse().model == "labelled:candidate"
    assert response.model == again.model == "labelled:candidate"


async def test_a_conversation_is_answered_by_the_agent_with_its_history(doors: Doors):
    said = [
        {"role": "system", "content": "The user is in Porto."},
        {"role": "user", "content": [{"type": "text", "text": "My name is Ada."}]},
        {"role": "assistant", "content": "Hello Ada."},
        {"role": "user", "content": "Who am I?"},
    ]
    doors.answers("You are Ada.")

    async with doors.client() as client:
        raw = await client.chat.completions.with_raw_response.create(model=AGENT, messages=said, user="ada")
    answer = raw.parse()
    job = (await doors.http.get(f"/v1/jobs/{raw.headers['x-wayline-job']}")).json()

    assert answer.id == f"chatcmpl-{job['job_id']}" and answer.model == AGENT
    assert answer.choices[0].message.content == job["answer"] == "You are Ada."
    assert answer.choices[0].finish_reason == "stop"
    assert (job["user_id"], job["session_id"], job["input"]) == ("ada", None, "Who am I?")
    assert job["submitted_by"] == {"how": "openai", "name": "local", "key_id": None}
    assert raw.headers["x-wayline-trace"] == job["trace_id"]
    assert Decimal(raw.headers["x-wayline-cost"]) == Decimal(job["cost_usd"]) > 0
    assert answer.usage and answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens > 0
    assert answer.usage.prompt_tokens_details and answer.usage.completion_tokens_details
    roles = [message["role"] for message in doors.messages()]
    assert roles[-3:] == ["user", "assistant", "user"] and "Porto" in str(doors.messages())
    # The application's words are told, and never in the operator's role.
    assert all(
        "Porto" not in str(message) for message in doors.messages() if message["role"] in ("system", "developer")
    )


async def test_a_session_takes_only_the_last_user_message(doors: Doors):
    async with doors.client() as client:
        for text in ("My name is Ada.", "Who am I?"):
            messages = [{"role": "user", "content": "Forget this."}, {"role": "assistant", "content": "No."}]
            await client.chat.completions.create(
                model=AGENT,
                messages=[*messages, {"role": "user", "content": text}],
                extra_headers={"X-Wayline-Session": "trip-1"},
            )

    told = str(doors.messages())
    assert "My name is Ada." in told and "Who am I?" in told and "Forget this." not in told


async def test_a_stream_is_the_same_answer_in_chunks(doors: Doors):
    doors.answers("One two three.")

    async with doors.client() as client:
        stream = await client.chat.completions.create(
            model=AGENT, messages=QUESTION, stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]

    said = [chunk.choices[0] for chunk in chunks if chunk.choices]
    assert said[0].delta.role == "assistant" and said[-1].finish_reason == "stop"
    assert "".join(choice.delta.content or "" for choice in said) == "One two three."
    assert len({chunk.id for chunk in chunks}) == 1
    assert [chunk.usage is not None for chunk in chunks] == [*(False for _ in chunks[1:]), True]
    assert chunks[-1].usage and chunks[-1].usage.total_tokens > 0


async def test_words_of_a_failed_call_are_never_streamed(doors: Doors):
    doors.answers(Say(text="Half of", cut=True), "Whole and well.")

    async with doors.client() as client:
        stream = await client.chat.completions.create(model=AGENT, messages=QUESTION, stream=True)
        text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

    assert text == "Whole and well."


async def test_an_eager_stream_sends_words_before_the_call_has_settled(doors: Doors):
    said = " ".join(["word"] * 40)
    doors.answers(Say(text=said, pace_s=0.05))

    async with doors.client() as client:
        stream = await client.chat.completions.create(
            model=AGENT, messages=QUESTION, stream=True, extra_headers={"X-Wayline-Stream": "eager"}
        )
        text, status = "", ""
        async for chunk in stream:
            text += (chunk.choices[0].delta.content or "") if chunk.choices else ""
            if text and not status:
                job_id = chunk.id.removeprefix("chatcmpl-")
                status = (await doors.http.get(f"/v1/jobs/{job_id}")).json()["status"]

    assert (status, text) == ("running", said)


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [
        ("n", 2, "unsupported_parameter"),
        ("logprobs", True, "unsupported_parameter"),
        ("service_tier", "flex", "unsupported_parameter"),
        ("modalities", ["text", "audio"], "unsupported_parameter"),
        ("stop", ["x"], "unsupported_parameter"),
        ("colour", "red", "unknown_parameter"),
    ],
)
async def test_a_field_that_no_agent_heeds_is_refused_by_name(field: str, value: object, code: str, doors: Doors):
    async with doors.client() as client:
        with pytest.raises(openai.BadRequestError) as refused:
            await client.chat.completions.create(model=AGENT, messages=QUESTION, extra_body={field: value})

    assert (refused.value.param, refused.value.code, refused.value.type) == (field, code, "invalid_request_error")
    assert doors.chat.calls == []


async def test_fields_that_change_nothing_are_taken(doors: Doors):
    async with doors.client() as client:
        answer = await client.chat.completions.create(
            model=AGENT,
            messages=QUESTION,
            n=1,
            logprobs=False,
            service_tier="auto",
            tools=[],
            top_p=0.9,
            seed=7,
            prompt_cache_key="k",
            store=False,
        )

    assert answer.choices[0].message.content == "Yes."


async def test_errors_have_the_shape_that_openai_clients_read(doors: Doors):
    async with doors.client() as client:
        with pytest.raises(openai.NotFoundError) as unknown:
            await client.chat.completions.create(model="nobody", messages=QUESTION)
        with pytest.raises(openai.UnprocessableEntityError) as wrong:
            await client.chat.completions.create(model=AGENT, messages=QUESTION, temperature=9)
        with pytest.raises(openai.BadRequestError) as audio:
            part = {"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}
            await client.chat.completions.create(model=AGENT, messages=[{"role": "user", "content": [part]}])
    lost = await doors.http.get("/openai/v1/nothing")

    assert (unknown.value.code, unknown.value.param) == ("model_not_found", "model")
    assert (wrong.value.param, wrong.value.type) == ("temperature", "invalid_request_error")
    assert audio.value.param == "messages.0.content.0.type"
    assert lost.status_code == 404 and lost.json()["error"]["type"] == "not_found_error"


async def test_a_failed_job_is_an_error_that_clients_do_not_repeat(doors: Doors):
    wrong = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    doors.answers("no JSON at all")
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": wrong}}

    async with doors.client(max_retries=2) as client:
        with pytest.raises(openai.InternalServerError) as failed:
            await client.chat.completions.create(model=AGENT, messages=QUESTION, response_format=form)
        stream = await client.chat.completions.create(model=AGENT, messages=QUESTION, response_format=form, stream=True)
        with pytest.raises(openai.APIError) as cut:
            _ = [chunk async for chunk in stream]

    assert failed.value.code == cut.value.code == "invalid_output"
    assert failed.value.response.headers["x-should-retry"] == "false"


async def test_an_answer_fits_the_schema_of_the_request(doors: Doors):
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    doors.answers("seven", '{"n": 7}')

    async with doors.client() as client:
        answer = await client.chat.completions.create(
            model=AGENT,
            messages=QUESTION,
            response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": schema}},
            reasoning_effort="low",
            temperature=0.1,
            max_completion_tokens=300,
        )
        with pytest.raises(openai.UnprocessableEntityError) as unusable:
            await client.chat.completions.create(
                model=AGENT,
                messages=QUESTION,
                response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": 7}}},
            )

    assert orjson.loads(answer.choices[0].message.content or "") == {"n": 7}
    sent = doors.chat.calls[0][1]
    assert sent["temperature"] == 0.1 and 300 in (sent.get("max_tokens"), sent.get("max_completion_tokens"))
    assert unusable.value.param == "response_format"


async def test_a_parked_job_says_where_to_decide(doors: Doors):
    await doors.save("careful", tools=("get_current_time",), ask="always", ask_tools={"get_current_time": "always"})
    doors.answers(Say(tools=(("get_current_time", {}),)), "Done.")

    async with doors.client() as client:
        answer = await client.chat.completions.create(model="careful", messages=QUESTION)
        stream = await client.chat.completions.create(model="careful", messages=QUESTION, stream=True)
        chunks = [chunk async for chunk in stream]

    told = answer.model_dump()["wayline"]
    assert told["status"] == "parked" and answer.choices[0].finish_reason == "stop"
    assert f"/v1/jobs/{told['job_id']}/approvals/" in (answer.choices[0].message.content or "")
    assert chunks[-1].choices[0].finish_reason == "stop"


async def test_a_request_that_is_sent_again_is_the_same_job(doors: Doors):
    again, other = {"x-stainless-retry-count": "1"}, [{"role": "user", "content": "Is it other?"}]

    async def job_of(messages: list[dict[str, str]], headers: dict[str, str]) -> str:
        body = {"model": AGENT, "messages": messages}
        answer = await doors.http.post("/openai/v1/chat/completions", json=body, headers=headers)
        assert answer.status_code == 200, answer.text
        return answer.headers["x-wayline-job"]

    first, resent = await job_of(QUESTION, {}), await job_of(QUESTION, again)
    anew, resent_anew, different = await job_of(QUESTION, {}), await job_of(QUESTION, again), await job_of(other, again)

    assert first == resent and anew == resent_anew
    assert len({first, anew, different}) == 3 == len(doors.chat.calls)


async def test_a_client_that_leaves_cancels_its_job_unless_it_returns(doors: Doors):
    release, say = held()
    doors.answers(say)
    body = {"model": AGENT, "messages": [{"role": "user", "content": "Wait for me."}]}

    async def left(**more: object) -> str:
        """Send a request and leave once its job is known."""
        async with doors.http.stream("POST", "/openai/v1/chat/completions", json={**body, **more}) as answer:
            await anext(answer.aiter_lines())
            return answer.headers["x-wayline-job"]

    gone, back = await left(stream=True, seed=1), await left(stream=True, seed=2)
    waiting = asyncio.create_task(
        doors.http.post(
            "/openai/v1/chat/completions",
            json={**body, "stream": True, "seed": 2},
            headers={"x-stainless-retry-count": "1"},
        )
    )

    async def status(job_id: str) -> str:
        return (await doors.http.get(f"/v1/jobs/{job_id}")).json()["status"]

    async def cancelled() -> bool:
        return await status(gone) == "cancelled"

    await until(cancelled, why="the job of a client that left is cancelled")
    release.set()
    answer = await waiting

    assert answer.headers["x-wayline-job"] == back and await status(back) == "completed"
    assert '"finish_reason":"stop"' in answer.text


async def test_a_client_that_hangs_up_cancels_its_job(doors: Doors):
    release, say = held()
    doors.answers(say)
    body = {"model": AGENT, "user": "hasty", "messages": [{"role": "user", "content": "Do hurry."}]}

    asking = asyncio.create_task(doors.http.post("/openai/v1/chat/completions", json=body))
    await until(lambda: doors.chat.calls != [], why="the model is asked")
    asking.cancel()
    job_id = doors.chat.calls[0][0].split("/")[1]

    async def cancelled() -> bool:
        return (await doors.http.get(f"/v1/jobs/{job_id}")).json().get("status") == "cancelled"

    await until(cancelled, why="the job of a client that hung up is cancelled")
    release.set()


async def test_an_image_at_an_inner_address_is_refused(doors: Doors):
    part = {"type": "image_url", "image_url": {"url": f"{doors.http.base_url}v1/secret.png"}}

    async with doors.client() as client:
        with pytest.raises(openai.BadRequestError) as refused:
            await client.chat.completions.create(model=AGENT, messages=[{"role": "user", "content": [part]}])

    assert (refused.value.code, refused.value.param) == ("invalid_file", "messages")
    assert doors.chat.calls == []


async def test_results_of_a_clients_tools_go_on_in_the_same_job(doors: Doors):
    doors.answers(Say(text="Let me see.", tools=ASKS), "Take an umbrella.")

    async with doors.client() as client:
        raw = await client.chat.completions.with_raw_response.create(model=AGENT, messages=QUESTION, tools=[WEATHER])
        first = raw.parse()
        [call] = first.choices[0].message.tool_calls
        result = {"role": "tool", "tool_call_id": call.id, "content": "rain"}
        said = [*QUESTION, first.choices[0].message.model_dump(exclude_none=True), result]
        again = {"x-stainless-retry-count": "1"}
        raws = [
            await client.chat.completions.with_raw_response.create(
                model=AGENT, messages=said, tools=[WEATHER], extra_headers=headers
            )
            for headers in ({}, again)
        ]
        with pytest.raises(openai.BadRequestError) as other:
            changed = [*said[:-1], {**result, "content": "sun"}]
            await client.chat.completions.create(model=AGENT, messages=changed, tools=[WEATHER])
        with pytest.raises(openai.BadRequestError) as unknown:
            strange = [*said[:-1], {**result, "tool_call_id": "call_of_nobody"}]
            await client.chat.completions.create(model=AGENT, messages=strange, tools=[WEATHER])

    assert (first.choices[0].finish_reason, first.choices[0].message.content) == ("tool_calls", "Let me see.")
    assert (call.type, call.function.name, orjson.loads(call.function.arguments)) == (
        "function",
        "weather",
        {"city": "Bonn"},
    )
    answers = [one.parse() for one in raws]
    assert [one.choices[0].message.content for one in answers] == ["Take an umbrella."] * 2
    assert {one.headers["x-wayline-job"] for one in (raw, *raws)} == {raw.headers["x-wayline-job"]}
    assert len(doors.chat.calls) == 2 and doors.messages()[-1]["content"] == "rain"
    assert (other.value.code, unknown.value.code) == ("result_conflict", "unknown_call")
    assert other.value.param == "messages.2"
    # Each answer counts its own calls alone.
    used = [one.usage.total_tokens for one in (first, answers[0]) if one.usage]
    job = (await doors.http.get(f"/v1/jobs/{raw.headers['x-wayline-job']}")).json()["usage"]
    assert sum(used) == job["input"] + job["output"]


async def test_calls_of_a_clients_tools_are_streamed_by_index(doors: Doors):
    two = (*ASKS, ("weather", {"city": "Rome"}))
    doors.answers(Say(text="Let me see.", tools=two), "Both are wet.")

    async with doors.client() as client:
        for mode in ("settled", "eager"):
            doors.answers(Say(text="Let me see.", tools=two), "Both are wet.")
            about = {"model": AGENT, "tools": [WEATHER], "extra_headers": {"X-Wayline-Stream": mode}}
            async with client.chat.completions.stream(messages=QUESTION, **about) as stream:
                first = (await stream.get_final_completion()).choices[0]
            calls = first.message.tool_calls
            results = [{"role": "tool", "tool_call_id": one.id, "content": "wet"} for one in calls]
            asked = [*QUESTION, {"role": "assistant", "tool_calls": [one.model_dump() for one in calls]}]
            with pytest.raises(openai.BadRequestError) as missing:
                await client.chat.completions.create(messages=[*asked, *results[:1]], **about)
            said = [*asked, *results]
            async with client.chat.completions.stream(messages=said, **about) as stream:
                second = (await stream.get_final_completion()).choices[0]

            assert (first.finish_reason, first.message.content) == ("tool_calls", "Let me see.")
            cities = [orjson.loads(one.function.arguments)["city"] for one in calls]
            assert (cities, missing.value.code) == (["Bonn", "Rome"], "missing_result")
            assert (second.finish_reason, second.message.content) == ("stop", "Both are wet.")


async def test_calls_come_one_at_a_time_where_the_client_wants_that(doors: Doors):
    doors.answers(Say(tools=(*ASKS, ("weather", {"city": "Rome"}))), "Both are wet.")

    async with doors.client() as client:
        about = {"model": AGENT, "tools": [WEATHER], "parallel_tool_calls": False}
        said, seen = [*QUESTION], []
        while True:
            answer = (await client.chat.completions.create(messages=said, **about)).choices[0]
            if answer.finish_reason == "stop":
                break
            calls = answer.message.tool_calls
            seen.append(len(calls))
            said.append({"role": "assistant", "tool_calls": [one.model_dump() for one in calls]})
            said += [{"role": "tool", "tool_call_id": one.id, "content": "wet"} for one in calls]

    assert (seen, answer.message.content, len(doors.chat.calls)) == ([1, 1], "Both are wet.", 2)


async def test_tools_that_cannot_be_heeded_are_refused_by_name(doors: Doors):
    taken = {"type": "function", "function": {"name": "run_code"}}
    wrong = {"type": "function", "function": {"name": "x", "parameters": {"type": "array"}}}
    asked: list[tuple[dict[str, object], str]] = [
        ({"tools": [WEATHER], "tool_choice": "required"}, "tool_choice"),
        ({"tools": [WEATHER], "tool_choice": {"type": "function", "function": {"name": "weather"}}}, "tool_choice"),
        ({"tools": [{"type": "custom", "custom": {"name": "x"}}]}, "tools.0.type"),
        ({"tools": [WEATHER, taken]}, "tools.1.function.name"),
        ({"tools": [wrong]}, "tools"),
        ({"tools": [WEATHER, WEATHER]}, "tools.1"),
        ({"tools": [{"type": "function", "name": "weather"}]}, "tools.0.function"),
    ]
    refused = []
    async with doors.client() as client:
        for more, _ in asked:
            with pytest.raises(openai.APIStatusError) as error:
                await client.chat.completions.create(model=AGENT, messages=QUESTION, **more)
            refused.append((error.value.status_code, error.value.param))
        none = await client.chat.completions.create(model=AGENT, messages=QUESTION, tools=[WEATHER], tool_choice="none")

    assert [param for _, param in refused] == [param for _, param in asked]
    assert {status for status, _ in refused} <= {400, 422}
    assert none.choices[0].message.content == "Yes."
    assert "weather" not in str(doors.chat.calls[-1][1].get("tools"))


async def test_an_input_that_is_too_long_has_openais_code(doors: Doors):
    error = {"message": "This model's maximum context length is 8192 tokens", "code": "context_length_exceeded"}
    doors.answers(Say(status=400, error=error))

    async with doors.client() as client:
        with pytest.raises(openai.BadRequestError) as refused:
            await client.chat.completions.create(model=AGENT, messages=QUESTION)

    assert (refused.value.code, refused.value.param) == ("context_length_exceeded", "messages")


async def test_forms_that_other_clients_send_are_taken(doors: Doors):
    pixel = f"data:image/png;base64,{base64.b64encode(png(8, 8)).decode()}"
    said: list[dict[str, object]] = [
        {"role": "user", "content": "Is it so?"},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "No."}]},
        {"role": "user", "content": [{"type": "text", "text": "See."}, {"type": "image_url", "image_url": pixel}]},
    ]
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    doors.answers('{"n": 7}')

    answer = await doors.http.post(
        "/openai/v1//chat/completions/",
        json={"model": AGENT, "messages": said, "response_format": {"type": "json_schema", "schema": schema}},
    )
    wrong = await doors.http.post(
        "/openai/v1/chat/completions",
        json={"model": AGENT, "messages": [{"role": "user", "content": [{"type": "text", "text": 5}]}]},
    )

    assert answer.json()["choices"][0]["message"]["content"] == '{"n": 7}'
    assert "Hm." not in str(doors.messages()) and "No." in str(doors.messages())
    assert "required" in str(doors.chat.calls[-1][1])
    assert wrong.json()["error"]["param"] == "messages.0.content.parts.0.text"
