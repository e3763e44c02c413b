"""The OpenAPI description is complete, and the gateway keeps to it under requests nobody thought of."""

from __future__ import annotations

import asyncio
import re
import sys

import pytest

from wayline.chassis import Bus
from wayline.testkit import Platform
from wayline.testkit.walks import seeds

from .conftest import Running, start_gateway
from .others import Others
from .story import Story

RUN_MAX_S = 1_800
DECIDED_HERE = (
    r"^/v1/memories$",
    r"^/v1/memories/",
    r"^/v1/documents$",
    r"^/v1/documents/",
    r"^/v1/search",
    r"^/v1/mcp/servers/import",
    r"^/v1/dead-letters",
    r"^/v1/jobs/\{job_id\}/answers",
    r"^/openai/v1/(models|embeddings|responses/)",
)
"""Where the gateway itself reads more than an id: one by the commit, all of them and the rest in `make faults`."""
THE_REST = (r"^/v1/[a-i]", r"^/v1/j", r"^/v1/m", r"^/v1/[k-ln-z]", r"^/(?!v1/)")
"""All paths, in parts that take some minutes each."""
STREAMED_HERE = ("/openai/v1/chat/completions", "/openai/v1/responses")
"""With `stream` they follow a job, too."""
CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,"
    "unsupported_method,allow_header_conformance"
)
STATUSES = {"401", "403", "422", "500", "503"}
WITHOUT_KEY = {
    f"{method} /v1/mcp/oauth/{page}"
    for method, page in (("GET", "start"), ("POST", "start"), ("GET", "callback"), ("GET", "client.json"))
}
"""Where a browser begins a login and comes back: its state says for whom, its cookie that it is the same browser. And
what an authorization server reads of the client, which is no secret."""


async def test_every_operation_names_its_problems_and_has_an_example(gateway: Running):
    spec = (await gateway.client.get("/openapi.json")).json()

    operations = {
        f"{method.upper()} {path}": operation
        for path, methods in spec["paths"].items()
        for method, operation in methods.items()
        if path.startswith("/v1/")
    }
    assert len(operations) >= 26
    for name, operation in operations.items():
        assert operation["responses"].keys() >= STATUSES, name
        problem = operation["responses"]["422"]["content"]
        assert problem == {"application/problem+json": {"schema": {"$ref": "#/components/schemas/HttpProblem"}}}, name
        assert operation.get("security") == (None if name in WITHOUT_KEY else [{"HTTPBearer": []}]), name
        assert operation["description"], name
    assert spec["components"]["schemas"]["SubmitBody"]["examples"]
    assert "HTTPValidationError" not in str(spec)


async def test_generated_clients_get_the_names_of_the_code(gateway: Running):
    spec = (await gateway.client.get("/openapi.json")).json()
    schemas = spec["components"]["schemas"]

    operations = [operation["operationId"] for methods in spec["paths"].values() for operation in methods.values()]
    assert len(set(operations)) == len(operations)
    assert {"submit_job", "get_job", "put_model"} <= set(operations)
    assert {"ModelCard", "Event", "Delta", "JobCompleted"} <= schemas.keys()
    assert not [name for name in schemas if name.endswith(("-Input", "-Output"))]
    put = spec["paths"]["/v1/models/{provider}/{model}"]["put"]["requestBody"]["content"]["application/json"]["schema"]
    assert "#/components/schemas/ModelCard" in str(put)
    assert set(re.findall(r"#/components/schemas/(\w+)", str(spec))) <= schemas.keys()


@pytest.mark.timeout(RUN_MAX_S + 60)
@pytest.mark.parametrize(
    "paths",
    [
        *(DECIDED_HERE[turn] for turn in seeds(len(DECIDED_HERE))),
        *(pytest.param(paths, marks=pytest.mark.slow) for paths in THE_REST),
    ],
)
async def test_no_generated_request_breaks_the_api_description(
    paths: str, platform: Platform, bus: Bus, others: Others
):
    await others.answer_everything()
    await Story(bus, "default", "told").tell()
    gateway = await start_gateway(platform, wait_max_s=0.05, openai_wait_max_s=0.05)
    # Made before it is waited for: where others are at work that takes longer than the ten seconds of its reader.
    assert (await gateway.client.get("/openapi.json", timeout=300)).is_success

    run = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "schemathesis.cli", "run", f"{gateway.url}/openapi.json"),
        *("--phases", "coverage", "--seed", "1"),
        *("--include-path-regex", paths),
        # Following a job that never runs does not end.
        *("--exclude-path", "/v1/jobs/{job_id}/events"),
        *(word for path in STREAMED_HERE for word in ("--exclude-path", path)),
        # With the first key every other request would be a 401.
        *("--exclude-path", "/v1/keys"),
        *("--checks", CHECKS, "--no-color", "--generation-database", "none"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        output, _ = await asyncio.wait_for(run.communicate(), RUN_MAX_S)
    finally:
        if run.returncode is None:
            run.kill()
            await run.wait()

    assert run.returncode == 0, output.decode()


async def test_the_docs_page_needs_no_other_server(gateway: Running):
    page = await gateway.client.get("/docs")

    assert page.headers["content-type"].startswith("text/html")
    assert "<script>" in page.text
    assert "<script src" not in page.text
    assert "<link" not in page.text


async def test_every_operation_of_a_caller_says_which_scope_it_needs(gateway: Running):
    paths = (await gateway.client.get("/openapi.json")).json()["paths"]
    silent = [
        f"{method} {path}"
        for path, operations in paths.items()
        for method, operation in operations.items()
        if operation.get("security") and "Needs the scope `" not in operation.get("description", "")
    ]

    # A key without any of them may ask which it has.
    assert silent == ["get /v1/me"]
    assert paths["/v1/jobs"]["post"]["x-wayline-scopes"] == ["write"]
