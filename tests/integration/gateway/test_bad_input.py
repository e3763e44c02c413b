"""Whatever is wrong with a request, the answer is a problem that says what, and nothing reaches the bus."""

from __future__ import annotations

import gzip
from typing import Any

from wayline.chassis import Bus
from wayline.telemetry import metrics
from wayline.testkit import until

from .conftest import Running
from .story import Story

JOB = {"agent": "assistant", "input": "hello"}
JSON = {"Content-Type": "application/json"}

BAD_BODIES: dict[str, tuple[bytes, str]] = {
    "invalid JSON": (b'{"agent": ', "JSON"),
    "nothing": (b"", "body: Field required"),
    "not an object": (b'"hello"', "body"),
    "no agent": (b'{"input": "x"}', "body.agent: Field required"),
    "no input": (b'{"agent": "a"}', "body.input: Field required"),
    "wrong type": (b'{"agent": 7, "input": "x"}', "body.agent: Input should be a valid string"),
    "a tenant of one's own": (b'{"agent": "a", "input": "x", "tenant": "globex"}', "body.tenant: Extra inputs"),
    "an unknown option": (b'{"agent": "a", "input": "x", "options": {"speed": 9}}', "body.options.speed: Extra inputs"),
    "an option out of range": (b'{"agent": "a", "input": "x", "options": {"max_steps": 0}}', "body.options.max_steps"),
    "a budget that is no number": (b'{"agent": "a", "input": "x", "options": {"budget_usd": "NaN"}}', "budget_usd"),
    "NaN": (b'{"agent": "a", "input": "x", "options": {"max_seconds": NaN}}', "JSON"),
    "half a surrogate pair": (b'{"agent": "a", "input": "\\ud800"}', "JSON"),
    "bytes that are no UTF-8": (b'{"agent": "a", "input": "\xff\xfe"}', "JSON"),
    "a subject in the job id": (b'{"agent": "a", "input": "x", "job_id": "a.>"}', "body.job_id: String should match"),
    "a NUL in the session": (b'{"agent": "a", "input": "x", "session_id": "a\\u0000"}', "body.session_id"),
    "nesting without end": (b'{"agent": "a", "input": ' + b"[" * 100_000, "JSON"),
}


async def test_a_bad_body_is_a_problem_that_names_what_is_wrong(gateway: Running, bus: Bus):
    for what, (body, named) in BAD_BODIES.items():
        answer = await gateway.client.post("/v1/jobs", content=body, headers=JSON)
        problem = answer.json()
        assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json"), what
        assert (problem["code"], problem["type"]) == ("invalid_request", "urn:wayline:problem:invalid_request"), what
        assert named in problem["detail"], what
    assert (await bus.js.stream_info("SUBMIT")).state.messages == 0


BAD_REQUESTS: dict[str, tuple[dict[str, Any], int, str]] = {
    "an unknown address": ({"method": "GET", "url": "/v1/nothing"}, 404, "not_found"),
    "a wrong method": ({"method": "PATCH", "url": "/v1/jobs"}, 405, "method_not_allowed"),
    "an unknown job": ({"method": "GET", "url": "/v1/jobs/nobody"}, 404, "not_found"),
    "an unknown job's events": ({"method": "GET", "url": "/v1/jobs/nobody/events"}, 404, "not_found"),
    "cancelling an unknown job": ({"method": "POST", "url": "/v1/jobs/nobody/cancel"}, 404, "not_found"),
    "a wildcard for a job": ({"method": "GET", "url": "/v1/jobs/%3E/events"}, 422, "invalid_request"),
    "a wait that is no number": ({"method": "POST", "url": "/v1/jobs?wait=nan", "json": JOB}, 422, "invalid_request"),
    "a key without end": (
        {"method": "POST", "url": "/v1/jobs", "json": JOB, "headers": {"Idempotency-Key": "k" * 256}},
        422,
        "invalid_request",
    ),
    "an error code that is too long": (
        {"method": "GET", "url": f"/v1/jobs?error_code={'x' * 65}"},
        422,
        "invalid_request",
    ),
    "a moment that no table takes": (
        {"method": "GET", "url": "/v1/costs?since=0001-01-01T00:00:00%2B14:00"},
        422,
        "invalid_request",
    ),
    "decisions since a moment that no table takes": (
        {"method": "GET", "url": "/v1/approvals?decided=true&since=0001-01-01T00:00:00%2B14:00"},
        422,
        "invalid_request",
    ),
    "a name with a NUL": (
        {"method": "PUT", "url": "/v1/agents/a%00b", "json": {"instructions": "x"}},
        422,
        "invalid_request",
    ),
    "limits of all tenants": ({"method": "PUT", "url": "/v1/tenants/*/limits", "json": {}}, 422, "invalid_request"),
    "a cursor with a NUL": ({"method": "GET", "url": "/v1/keys?cursor=AA"}, 400, "invalid_cursor"),
    "words with a NUL": ({"method": "GET", "url": "/v1/jobs?q=a%00b"}, 422, "invalid_request"),
    "a form": ({"method": "POST", "url": "/v1/jobs", "data": JOB}, 422, "invalid_request"),
    "a document as a picture": (
        {"method": "POST", "url": "/v1/documents", "content": b"x", "headers": {"Content-Type": "image/png"}},
        415,
        "unsupported_media_type",
    ),
    "an empty document": (
        {"method": "POST", "url": "/v1/documents", "json": {"name": "a", "text": " \n"}},
        422,
        "empty_document",
    ),
    "an empty file": (
        {"method": "POST", "url": "/v1/documents", "files": {"file": ("a.txt", b"")}},
        422,
        "empty_document",
    ),
    "a form without a file": (
        {"method": "POST", "url": "/v1/documents", "files": {"other": (None, "x")}},
        422,
        "empty_document",
    ),
    "a form that is none": (
        {
            "method": "POST",
            "url": "/v1/documents",
            "content": b"x",
            "headers": {"Content-Type": "multipart/form-data"},
        },
        400,
        "bad_request",
    ),
    "metadata that is no object": (
        {
            "method": "POST",
            "url": "/v1/documents",
            "files": {"file": ("a.txt", b"x")},
            "data": {"metadata": "[1]"},
        },
        422,
        "invalid_request",
    ),
    "a document id with a slash": (
        {"method": "POST", "url": "/v1/documents", "json": {"name": "a", "text": "x", "document_id": "../b"}},
        422,
        "invalid_request",
    ),
    "an empty query": ({"method": "POST", "url": "/v1/search", "json": {"query": ""}}, 422, "invalid_request"),
    "a search for tools by blanks": (
        {"method": "POST", "url": "/v1/tools/search", "json": {"query": " \n"}},
        422,
        "invalid_request",
    ),
    "an agent with a placeholder": (
        {"method": "PUT", "url": "/v1/agents/a", "json": {"instructions": "Today is {{date}}."}},
        422,
        "invalid_request",
    ),
    "a group nobody knows": ({"method": "GET", "url": "/v1/costs?group_by=mood"}, 422, "invalid_request"),
    "a service that is away": ({"method": "GET", "url": "/v1/agents"}, 503, "unavailable"),
    "tracing that is away": ({"method": "GET", "url": "/v1/jobs"}, 503, "unavailable"),
    "a dead letter of nobody": ({"method": "GET", "url": "/v1/dead-letters/9"}, 404, "not_found"),
}


async def test_a_bad_request_is_a_problem_with_its_own_code(gateway: Running):
    answers = {what: await gateway.client.request(**request) for what, (request, _, _) in BAD_REQUESTS.items()}

    assert {what: (answer.status_code, answer.json()["code"]) for what, answer in answers.items()} == {
        what: (status, code) for what, (_, status, code) in BAD_REQUESTS.items()
    }
    for what, answer in answers.items():
        assert answer.headers["content-type"] == "application/problem+json", what
        assert answer.json()["status"] == answer.status_code, what
        assert ("retry-after" in answer.headers) == (answer.status_code == 503), what
        assert ("allow" in answer.headers) == (answer.status_code == 405), what
    assert answers["a wrong method"].headers["allow"] == "GET, POST"


async def test_what_clients_invent_does_not_become_a_metric_of_its_own(gateway: Running):
    for n in range(3):
        assert (await gateway.client.request(f"INVENTED{n}", f"/v1/invented/{n}")).status_code == 400
        await gateway.client.request("PROPFIND", f"/v1/invented/{n}")
        await gateway.client.get(f"/v1/jobs/invented{n}")

    scraped = (await gateway.client.get("/metrics")).text
    assert 'method="GET",route="/v1/jobs/{job_id}",status="404"' in scraped
    assert 'method="other",route="none",status="404"' in scraped
    assert "nvented" not in scraped
    assert "INVENTED" not in scraped


async def test_invalid_json_is_refused_with_its_character_position(gateway: Running):
    headers = {"content-type": "application/json"}

    answer = await gateway.client.post("/v1/jobs", content=b'{"agent": "a", oops', headers=headers)

    assert (answer.status_code, answer.json()["detail"]) == (422, "body: this is not JSON from character 15 on")
    assert answer.json()["errors"] == [{"field": "body", "message": "this is not JSON from character 15 on"}]


async def test_a_body_that_is_not_sent_as_json_is_told_how(gateway: Running):
    body = b'{"agent": "assistant", "input": "x"}'
    sent = {
        # What curl sends where nobody says otherwise.
        "send `Content-Type: application/json`": {"Content-Type": "application/x-www-form-urlencoded"},
        "send it uncompressed": {**JSON, "Content-Encoding": "gzip"},
    }

    for told, headers in sent.items():
        content = gzip.compress(body) if "Content-Encoding" in headers else body
        answer = await gateway.client.post("/v1/jobs", content=content, headers=headers)
        assert (answer.status_code, told in answer.json()["detail"]) == (422, True)


async def test_a_character_set_named_as_an_encoding_is_passed_over(gateway: Running):
    answer = await gateway.client.post("/v1/jobs", json=JOB, headers={"Content-Encoding": "UTF-8"})

    assert answer.status_code == 202


async def test_head_is_answered_as_get_without_a_body(gateway: Running, bus: Bus):
    await Story(bus, "default", "j1").tell(steps=1)
    counted = metrics.http_requests.labels("HEAD", "/v1/jobs/{job_id}", "200")._value
    before = counted.get()
    paths = ("/health/live", "/v1/jobs/j1", "/v1/jobs/j1/events", "/v1/events", "/v1/nothing")

    for path in paths:
        answer = await gateway.client.head(path)
        assert (answer.status_code, answer.content) == (404 if path == "/v1/nothing" else 200, b""), path
    assert (await gateway.client.head("/v1/jobs/j1")).headers["content-length"] != "0"
    assert counted.get() == before + 2
    await until(lambda: metrics.event_streams._value.get() == 0, why="the streams to end")


async def test_head_takes_no_step_of_a_login(gateway: Running):
    answers = [await gateway.client.head(f"/v1/mcp/oauth/{step}?state=default.x") for step in ("start", "callback")]

    assert [answer.status_code for answer in answers] == [405, 405]


async def test_an_unknown_address_says_where_addresses_are_listed(gateway: Running):
    lost = await gateway.client.get("/v1/jobs/")
    openai = await gateway.client.post("/openai/chat/completions", json={})

    assert "nothing is at GET /v1/jobs/: /docs lists all" in lost.json()["detail"]
    assert "ends with /openai/v1" in openai.json()["error"]["message"]
