"""Tenants and keys from the command line, and what two tenants see of each other."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import httpx2

from .conftest import Installed

JOB = {"agent": "assistant", "input": "What is a job?"}


def ask(wayline: Installed, key: str | None, method: str, path: str, **how: Any) -> httpx2.Response:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    url = f"http://127.0.0.1:{wayline.http_port}{path}"
    return httpx2.request(method, url, headers=headers, timeout=60, trust_env=False, **how)


def machine_key(wayline: Installed) -> Path:
    return wayline.data / "credentials" / "machine-key"


def test_tenants_and_keys_created_by_command_work_over_http(fresh: Installed):
    fresh.start()
    opened = ask(fresh, None, "GET", "/v1/jobs")
    secrets = {}
    for tenant in ("acme", "globex"):
        fresh.run_json("tenants", "create", tenant)
        key = fresh.run_json("keys", "create", "--tenant", tenant, "--name", "app", "--expires", "30d")
        secrets[tenant] = key["key"]
    closed = ask(fresh, None, "GET", "/v1/jobs")

    jobs = {
        tenant: ask(fresh, key, "POST", "/v1/jobs?wait=30", json={**JOB, "job_id": "order-1"}).json()
        for tenant, key in secrets.items()
    }
    ask(fresh, secrets["acme"], "POST", "/v1/jobs", json={**JOB, "job_id": "only-acmes"})
    foreign = ask(fresh, secrets["globex"], "GET", "/v1/jobs/only-acmes")

    assert [opened.status_code, closed.status_code, foreign.status_code] == [200, 401, 404]
    assert {tenant: job["status"] for tenant, job in jobs.items()} == {"acme": "completed", "globex": "completed"}
    assert stat.S_IMODE(machine_key(fresh).stat().st_mode) == 0o600
    listed = fresh.run_json("keys", "list", "--tenant", "acme")["keys"]
    assert [key["name"] for key in listed] == ["app"]
    assert [tenant["tenant"] for tenant in fresh.run_json("tenants", "list")["tenants"]] == [
        "acme",
        "default",
        "globex",
    ]

    limits = fresh.run_json("tenants", "limits", "acme", "--set", "tenant.requests=600:50", "--set", "key.jobs=none")
    assert limits["tenant_rates"]["requests"] == {"per_minute": 600, "burst": 50}
    limits = fresh.run_json("tenants", "limits", "acme", "--unset", "tenant.requests")
    assert limits["limits"]["key"]["jobs"]["per_minute"] is None and limits["tenant_rates"]["requests"] is None
    assert fresh.run_json("tenants", "limits", "acme", "--reset")["limits"] is None
    changed = fresh.run_json("keys", "limits", listed[0]["id"], "--jobs", "60")
    assert changed["limits"] == {"requests": None, "jobs": {"per_minute": 60, "burst": None}}
    fresh.run_json("tenants", "disable", "globex", "--reason", "unpaid")
    fresh.run_json("keys", "revoke", listed[0]["id"])
    disabled = ask(fresh, secrets["globex"], "POST", "/v1/jobs", json=JOB)
    revoked = ask(fresh, secrets["acme"], "POST", "/v1/jobs", json=JOB)
    assert [disabled.json()["code"], revoked.status_code] == ["tenant_disabled", 401]

    wrong = fresh.wayline("tenants", "list", WAYLINE_API_KEY=secrets["acme"])
    assert (wrong.returncode, "not valid" in wrong.stderr) == (1, True)
    assert ask(fresh, None, "GET", "/metrics").status_code == 401
    assert fresh.run_json("agents", "remove", "assistant") == {"deleted": True}
    assert fresh.run_json("agents", "restore", "assistant")["name"] == "assistant"


def test_the_machines_key_goes_to_no_other_address(empty: Installed):
    from wayline.client import Address

    machine_key(empty).parent.mkdir(parents=True)
    machine_key(empty).write_text("wl_secret\n")
    note = empty.data / "up.json"
    note.write_text(json.dumps({"pid": 1, "gateway": "http://127.0.0.1:8080"}))

    def address(**variables: str) -> Address:
        from pytest import MonkeyPatch

        with MonkeyPatch.context() as patch:
            for name in ("WAYLINE_URL", "WAYLINE_API_KEY", "WAYLINE_HTTP_PORT"):
                patch.delenv(name, raising=False)
            for name, value in {"WAYLINE_DATA_DIR": str(empty.data), **variables}.items():
                patch.setenv(name, value)
            return Address.from_environment()

    assert address().key == "wl_secret"
    assert address(WAYLINE_HTTP_PORT="8080").key == "wl_secret"
    assert address(WAYLINE_API_KEY="mine").key == "mine"
    assert address(WAYLINE_URL="http://elsewhere:8080").key is None
    assert address(WAYLINE_HTTP_PORT="9090").key is None
