"""What one tenant made is to another as if it were not there, by requests generated over the whole API."""

from __future__ import annotations

import random
import re
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest

from wayline.contracts.tenants import CreateTenant
from wayline.contracts.tenants import Tenant as KnownTenant
from wayline.gateway.adapters.keys import create_key
from wayline.gateway.keys import SCOPES, Scope
from wayline.gateway.settings import Settings
from wayline.notifier.settings import Settings as NotifierSettings
from wayline.testkit import Platform
from wayline.testkit.walks import cases, seeds
from wayline.tool_registry.settings import Settings as RegistrySettings

from .generated_requests import Generator, Operation
from .one_of_everything import Tenant, fill, make_everything

WALKS = 4
NAME, STRANGER = "zuzu", "yoyo"
"""How the one tenant calls its things, and how nobody does."""
OTHER_DIGITS = str.maketrans("0123456789abcdef", "123456789abcdef0")
QUERY_SHARE = 0.25
"""Of the parameters that a request may leave out."""
SERVICES = ("router", "tool_registry", "executor", "retrieval", "tracing", "notifier", "gateway")
OWN: tuple[Scope, ...] = tuple(scope for scope in SCOPES if scope != "operator")
NOT_WALKED = {
    # It does not end; `test_tenant_events.py` has two tenants' streams.
    "GET /v1/events",
    # Of the installation, and the same for everybody.
    *(f"GET {path}" for path in ("/metrics", "/health/live", "/health/ready", "/v1/mcp/oauth/client.json")),
}
NOT_MADE = {
    # Nothing waits for a person or can be consolidated, no webhook was called, nothing is dead, no server is connected.
    "/v1/memories/consolidations/{run_id}/undo",
    *("/v1/jobs/{job_id}/answers/{decision_id}", "/v1/jobs/{job_id}/approvals/{approval_id}"),
    *(f"/v1/webhooks/{{name}}/deliveries/{{delivery_id}}{more}" for more in ("", "/redeliver")),
    *(f"/v1/dead-letters/{{sequence}}{more}" for more in ("", "/dismiss")),
    *("/v1/mcp/servers/{name}/prompts/{prompt}", "/v1/tools/{name}", "/v1/tools/{name}/call"),
    *(f"/v1/tenants/{{tenant}}{more}" for more in ("", "/disable", "/enable", "/weight", "/limits")),
    *("/v1/replicas/{name}/drain", "/v1/replicas/{name}/undrain", "/jaeger/api/services/{service}/operations"),
}
"""Paths with a name of something that this test's tenant has not: they are walked with the names of strangers."""
MOMENTS = re.compile(
    r"\d{4}-\d\d-\d\dT[\d:.]+(Z|\+00:00)|(?<![0-9a-f])[0-9a-f]{16,40}(?![0-9a-f])|whsec_[\w+/=]+|wl_\w+"
)
"""Times, ids and secrets that are new in each answer."""
FIGURES = re.compile(r"\"(\w*(?:_ms|_s|seconds|sequence|seq|set_id))\": ?[\d.e\"-]+")
WITH_NEW_SPANS = {
    *("GET /v1/overview", "GET /v1/jobs/{job_id}/trace", "GET /v1/traces", "GET /v1/traces/{trace_id}"),
    *("GET /jaeger/api/services", "GET /jaeger/api/traces", "GET /jaeger/api/traces/{trace_id}"),
}
"""Their spans come a moment later than what they tell of, and the owner's own requests are among them."""
ASYNCHRONOUS = ("job_id", "session_id", "document_id")
"""What is made a moment after it was accepted: another tenant's is called otherwise."""


@dataclass
class Walk:
    """Another tenant's requests that name what the first one made."""

    owner: Tenant
    other: Tenant
    random: random.Random
    generator: Generator
    strange: Generator
    sent: list[tuple[str, int]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    async def try_operation(self, operation: Operation, *, alike: bool, conditional: bool = False) -> None:
        """Send a request with the owner's names and one with names that nobody has: the answers are alike.

        Where not `alike`, what was done with a name before may be seen in the answer.
        """
        state = self.random.getstate()
        with_names = await self._send(operation, self.generator, str, conditional=conditional)
        self.random.setstate(state)
        without = await self._send(operation, self.strange, twin, conditional=conditional)
        self.sent.append((operation.name, with_names.status_code))
        for answer in (with_names, without):
            self._look(operation, answer)
        codes, plain = zip(*((one.status_code, plain_text(one)) for one in (with_names, without)), strict=True)
        if codes[0] != codes[1] or (plain[0] != plain[1] and (alike or with_names.is_error)):
            told = "\n  ".join(f"{code} {text[:600]}" for code, text in zip(codes, plain, strict=True))
            self.problems.append(f"{operation.name}: not as if it were not there\n  {told}")

    async def try_cursors(self, operation: Operation) -> None:
        """Read a list from where the owner's lists stopped."""
        if "cursor" not in operation.queries() or not self.owner.has(operation.path):
            return
        for path, cursor in self.owner.cursors.items():
            answer = await self.other.ask(
                "GET", self.owner.filled(operation.path), params={"cursor": cursor, "limit": 1}
            )
            self._look(operation, answer)
            if answer.status_code not in (200, 400, 403, 404, 422):
                self.problems.append(f"{operation.name} with a cursor of {path}: {answer.status_code} {answer.text}")

    async def _send(
        self, operation: Operation, generator: Generator, called: Callable[[str], str], *, conditional: bool
    ) -> httpx2.Response:
        places = {place: called(value) for place, value in self.owner.places.items()}
        params = {
            name: generator.value(one["schema"], name=name)
            for name, one in operation.queries().items()
            if name not in ("cursor", "wait") and (one.get("required") or self.random.random() < QUERY_SHARE)
        }
        headers: dict[str, str] = {}
        if conditional:
            headers["If-Match"] = called(self.owner.tags.get(operation.path, '"0123456789abcdef"'))
        body: dict[str, Any] = {}
        if (schema := operation.body()) is not None:
            body["json"] = generator.body(schema)
            if (recorded := self.owner.bodies.get(operation.name)) is not None and self.random.random() < 0.6:
                made = {name: value for name, value in recorded.items() if name not in ASYNCHRONOUS}
                body["json"] = renamed(
                    made, {self.owner.word: self.other.word, self.owner.name: called(self.owner.name)}
                )
        return await self.other.ask(
            operation.method, fill(operation.path, places), params=params, headers=headers, **body
        )

    def _look(self, operation: Operation, answer: httpx2.Response) -> None:
        # A server that the other tenant made in this walk is nowhere, which is an answer.
        nowhere = answer.status_code == 503 and operation.path.startswith("/v1/mcp/servers/")
        if answer.status_code >= 500 and not nowhere:
            self.problems.append(f"{operation.name}: {answer.status_code} {answer.text} {answer.request.url}")
        if self.owner.word in answer.text:
            self.problems.append(f"{operation.name}: has the owner's words\n  {answer.text[:600]}")


def twin(value: str) -> str:
    """Return a value of the same form that nobody has."""
    if NAME in value.lower():
        return value.replace(NAME, STRANGER).replace(NAME.upper(), STRANGER.upper())
    return re.sub(r"[0-9a-f]{8,}", lambda found: found[0][::-1].translate(OTHER_DIGITS), value)


def plain_text(answer: httpx2.Response) -> str:
    """Return an answer without the names that were sent and without moments."""
    text = re.sub(f"{NAME}|{STRANGER}", "·", answer.text, flags=re.IGNORECASE)
    return FIGURES.sub(r'"\1":0', MOMENTS.sub("·", text))


def renamed(value: Any, names: dict[str, str]) -> Any:
    """Return what was sent, with other words in it."""
    if isinstance(value, str):
        for one, other in names.items():
            value = value.replace(one, other)
        return value
    if isinstance(value, dict):
        return {name: renamed(one, names) for name, one in value.items()}
    return [renamed(one, names) for one in value] if isinstance(value, list) else value


def names_of(tenant: Tenant, change: Any = str) -> dict[str, Any]:
    """Return what a tenant's things are called, by the names of parameters and fields."""
    at, name = tenant.places, tenant.name
    found = {
        "agent": at["/v1/agents/{name}"],
        "job_id": at["/v1/jobs/{job_id}"],
        "id": at["/v1/jobs/{job_id}"],
        "session_id": f"{name}-session",
        "user_id": f"{name}-user",
        "schedule": at["/v1/schedules/{name}"],
        "tag": f"{name}:1",
        "cites": f"{name}-document",
        "document_id": f"{name}-document",
        "label": f"{name}-label",
        "subject_id": f"{name}-subject",
        "key_id": at["/v1/keys/{key_id}"],
        "model": f"chat/{name}/own",
        "server": f"{name}-server",
        "previous_response_id": at["/openai/v1/responses/{response_id}"],
        "fact_id": at["/v1/memories/{fact_id}"],
    }
    found = {key: change(value) for key, value in found.items()}
    return {**found, "job_ids": [found["job_id"]], "document_ids": [found["document_id"]]}


async def operations_of(tenant: Tenant) -> tuple[list[Operation], dict[str, Any]]:
    spec = (await tenant.ask("GET", "/openapi.json", timeout=120)).json()
    found = [
        Operation(method.upper(), path, described)
        for path, methods in spec["paths"].items()
        for method, described in methods.items()
    ]
    return [one for one in found if one.name not in NOT_WALKED], spec["components"]["schemas"]


async def read_everything(tenant: Tenant, operations: list[Operation]) -> dict[str, tuple[int, str]]:
    """Return each answer to a GET, without moments; keep the cursors and tags that they name."""
    found: dict[str, tuple[int, str]] = {}
    for operation in operations:
        if operation.method != "GET" or not tenant.has(operation.path) or "events" in operation.path:
            continue
        path = tenant.filled(operation.path)
        required = {name: "1" for name, one in operation.queries().items() if one.get("required")}
        answer = await tenant.ask("GET", path, params=required)
        if answer.headers.get("etag"):
            tenant.tags[operation.path] = answer.headers["etag"]
        if "cursor" in operation.queries():
            page = await tenant.ask("GET", path, params={"limit": 1, **required})
            if page.is_success and page.json().get("next_cursor"):
                tenant.cursors[operation.path] = page.json()["next_cursor"]
        if operation.name not in WITH_NEW_SPANS:
            found[operation.name] = answer.status_code, plain_text(answer)
    return found


async def two_tenants(platform: Platform) -> tuple[Tenant, Tenant]:
    keys = {"keys": f"k1:{b64encode(bytes(32)).decode()}"}
    await platform.start(
        *SERVICES,
        gateway=Settings(http_port=0, wait_max_s=30),
        tool_registry=RegistrySettings.model_validate(keys),
        notifier=NotifierSettings.model_validate(keys),
    )
    http, store = await platform.http(timeout_s=60), await platform.store("gateway")
    made = []
    for name, word in ((NAME, "quokka"), ("globex", "thing")):
        await platform.bus.ask(CreateTenant(tenant=name), KnownTenant)
        made.append(Tenant(name, http, await create_key(store, name, "app", scopes=OWN), word))
    return made[0], made[1]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", seeds(WALKS))
async def test_no_request_tells_one_tenant_of_another(seed: int, platform: Platform):
    owner, other = await two_tenants(platform)
    operations, schemas = await operations_of(other)
    await make_everything(owner)
    chance = random.Random(seed)
    walk = Walk(
        owner,
        other,
        chance,
        Generator(schemas, names_of(owner), chance),
        Generator(schemas, names_of(owner, twin), chance),
    )
    assert {one.path for one in operations if not owner.has(one.path)} == NOT_MADE
    before = await read_everything(owner, operations)

    reading, changing = ([one for one in operations if (one.method == "GET") is gets] for gets in (True, False))
    chance.shuffle(changing)
    for operation in cases(reading, share=2):
        await walk.try_operation(operation, alike=operation.name not in WITH_NEW_SPANS)
        await walk.try_cursors(operation)
    for operation in changing:
        if operation.takes_header("if-match"):
            await walk.try_operation(operation, alike=True, conditional=True)
    for operation in cases([*changing, *reading]):
        await walk.try_operation(operation, alike=False)

    assert not walk.problems, "\n".join(walk.problems)
    after = await read_everything(owner, operations)
    assert {name: (before[name], told) for name, told in after.items() if told != before[name]} == {}
