"""Who may do what: the tenant comes from the key and from nothing else."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from wayline.chassis import Bus
from wayline.contracts import headers as h
from wayline.embedded import free_port
from wayline.gateway.adapters import keys as remembered
from wayline.gateway.adapters.keys import create_key, revoke_key
from wayline.gateway.errors import NoKeys, PortTaken
from wayline.testkit import Platform
from wayline.testkit.walks import cases

from .conftest import Running, start_gateway
from .story import Story

JOB = {"agent": "assistant", "input": "hello"}


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


async def test_without_any_key_this_machine_is_the_tenant_default(gateway: Running, bus: Bus):
    await gateway.client.post("/v1/jobs", json=JOB)

    assert (await bus.js.get_msg("SUBMIT", 1)).subject == "jobs.submit.default"


async def test_the_first_key_closes_the_api_and_revoking_keeps_it_closed(
    platform: Platform, gateway: Running, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(remembered, "FRESH_S", 0.0)
    store = await platform.store("gateway")
    before = await gateway.client.post("/v1/jobs", json=JOB)
    secret = await create_key(store, "acme", "laptop")
    nobody = await gateway.client.post("/v1/jobs", json=JOB)
    acme = await gateway.client.post("/v1/jobs", json=JOB, headers=bearer(secret))
    await revoke_key(store, "acme", secret)
    revoked = await gateway.client.post("/v1/jobs", json=JOB, headers=bearer(secret))
    still = await gateway.client.post("/v1/jobs", json=JOB)
    await store.close()

    assert [a.status_code for a in (before, nobody, acme, revoked, still)] == [202, 401, 202, 401, 401]
    assert (nobody.json()["code"], nobody.headers["www-authenticate"]) == ("unauthorized", "Bearer")


async def test_any_key_may_ask_what_it_may_do(platform: Platform, gateway: Running):
    opened = (await gateway.client.get("/v1/me")).json()
    store = await platform.store("gateway")
    until = datetime(2099, 1, 1, tzinfo=UTC)
    secret = await create_key(store, "acme", "phone", scopes=("tools",), expires_at=until, user_id="ann")
    await store.close()

    mine = (await gateway.client.get("/v1/me", headers=bearer(secret))).json()

    assert (opened["tenant"], opened["open"], opened["key_id"], opened["links"]) == ("default", True, None, {})
    assert (mine["tenant"], mine["name"], mine["scopes"], mine["user_id"]) == ("acme", "phone", ["tools"], "ann")
    assert (datetime.fromisoformat(mine["expires_at"]), mine["open"]) == (until, False)
    assert secret not in str(mine)


async def test_wrong_expired_and_foreign_keys_are_refused_alike(platform: Platform):
    store = await platform.store("gateway")
    good = await create_key(store, "acme", "laptop")
    expired = await create_key(store, "acme", "old", expires_at=datetime.now(UTC) - timedelta(seconds=1))
    await store.close()
    gateway = await start_gateway(platform)
    forged = good[:-1] + ("A" if good[-1] != "A" else "B")

    answers = [
        await gateway.client.get("/v1/jobs/x", headers={b"Authorization": f"Bearer {key}".encode()})
        for key in (expired, forged, "sk-1", "clé")
    ]

    assert {(a.status_code, a.json()["detail"]) for a in answers} == {
        (401, "this API key is not valid: it is unknown, expired or revoked")
    }


async def test_a_key_does_only_what_its_scopes_say(platform: Platform):
    store = await platform.store("gateway")
    reader = bearer(await create_key(store, "acme", "dashboard", scopes=("read",)))
    await store.close()
    gateway = await start_gateway(platform)

    read = await gateway.client.get("/v1/jobs/x", headers=reader)
    write = await gateway.client.post("/v1/jobs", json=JOB, headers=reader)
    admin = await gateway.client.get("/v1/dead-letters", headers=reader)

    assert [a.status_code for a in (read, write, admin)] == [404, 403, 403]
    assert "lacks the scope 'write'" in write.json()["detail"]


async def test_another_tenants_things_do_not_exist(platform: Platform, bus: Bus):
    store = await platform.store("gateway")
    acme, globex = [bearer(await create_key(store, tenant, "t")) for tenant in ("acme", "globex")]
    await store.close()
    gateway = await start_gateway(platform)
    await Story(bus, "acme", "told").tell()
    story = Story(bus, "acme", "parked")
    await story.begin()
    await story.claim()
    await story.park("d1")
    await gateway.client.post("/v1/jobs", json={**JOB, "job_id": "queued"}, headers=acme)
    await bus.store("dead.SUBMIT.router", b"{}", {h.TENANT: "acme", h.DEAD_CODE: "invalid_message"})

    for job in ("told", "parked", "queued"):
        for method, path in (("GET", ""), ("GET", "/events"), ("POST", "/cancel")):
            answer = await gateway.client.request(method, f"/v1/jobs/{job}{path}", headers=globex)
            assert answer.status_code == 404, (job, path)
    answered = await gateway.client.post("/v1/jobs/parked/answers/d1", json={"outcome": "succeeded"}, headers=globex)
    letters = [await gateway.client.get("/v1/dead-letters", headers=who) for who in (acme, globex)]
    letter = await gateway.client.get("/v1/dead-letters/1", headers=globex)

    assert answered.status_code == 404
    assert [len(page.json()["dead_letters"]) for page in letters] == [1, 0]
    assert letter.status_code == 404
    assert (await bus.js.stream_info("SIGNALS")).state.messages == 0
    assert (await gateway.client.get("/v1/jobs/told", headers=acme)).json()["status"] == "completed"


@pytest.mark.parametrize(
    "header", cases([{"Origin": "https://evil.example"}, {"Host": "evil.example:8080"}, {"Origin": "null"}])
)
async def test_an_open_api_refuses_web_pages_of_other_sites(header: dict[str, str], gateway: Running):
    answer = await gateway.client.post("/v1/jobs", json=JOB, headers=header)

    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")


async def test_it_does_not_listen_beyond_this_machine_without_a_key(platform: Platform):
    with pytest.raises(NoKeys, match=r"refusing to listen on 0\.0\.0\.0 .* WAYLINE_HTTP_HOST"):
        await start_gateway(platform, http_host="0.0.0.0")
    store = await platform.store("gateway")
    secret = await create_key(store, "acme", "laptop")
    await store.close()

    gateway = await start_gateway(platform, http_host="0.0.0.0")

    assert (await gateway.client.get("/v1/jobs/x")).status_code == 401
    assert (await gateway.client.get("/v1/jobs/x", headers=bearer(secret))).status_code == 404


async def test_a_taken_port_is_said_plainly(platform: Platform):
    port = free_port()
    await start_gateway(platform, http_port=port)

    with pytest.raises(PortTaken, match=rf"cannot listen on 127\.0\.0\.1:{port} .*WAYLINE_HTTP_PORT"):
        await start_gateway(platform, http_port=port)


async def test_metrics_need_an_operators_key_where_keys_are_needed(platform: Platform, gateway: Running):
    store = await platform.store("gateway")
    opened = await gateway.client.get("/metrics")
    admin = await create_key(store, "acme", "admin", scopes=("read", "write", "admin"))
    operator = await create_key(store, "default", "prometheus", scopes=("operator",))
    await store.close()
    keyed = await start_gateway(platform)

    answers = [
        await keyed.client.get("/metrics"),
        await keyed.client.get("/metrics", headers=bearer(admin)),
        await keyed.client.get("/metrics", headers=bearer(operator)),
    ]
    open_metrics = {**bearer(operator), "Accept": "application/openmetrics-text;version=1.0.0"}
    with_examples = await keyed.client.get("/metrics", headers=open_metrics)

    assert opened.status_code == 200
    assert [answer.status_code for answer in answers] == [401, 403, 200]
    assert "wayline_http_requests_total" in answers[2].text
    assert with_examples.headers["content-type"].startswith("application/openmetrics-text")
    assert (await keyed.client.get("/health/ready")).status_code == 200
