"""A tenant that has made one of everything that the API makes, each with a word that nobody else says."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import httpx2

from wayline.testkit import until

WITHIN_S = 60


@dataclass
class Tenant:
    """A tenant's key, what was made with it, and the ids and tags that the answers named."""

    name: str
    http: httpx2.AsyncClient
    key: str
    word: str
    """In all that it says."""
    places: dict[str, str] = field(default_factory=dict)
    """Values of paths, by the path up to their name: `/v1/agents/{name}`."""
    bodies: dict[str, Any] = field(default_factory=dict)
    """What was sent, by operation."""
    tags: dict[str, str] = field(default_factory=dict)
    """Entity tags, by path."""
    cursors: dict[str, str] = field(default_factory=dict)
    """Of lists, by path."""

    async def ask(self, method: str, url: str, **how: Any) -> httpx2.Response:
        headers = {"Authorization": f"Bearer {self.key}", "Accept": "application/json", **how.pop("headers", {})}
        return await self.http.request(method, url, headers=headers, **how)

    async def make(self, method: str, path: str, json: Any = None, *, query: str = "", **places: str) -> dict[str, Any]:
        """Send a request that succeeds; keep what was sent, and under which names."""
        self.bodies[f"{method} {path}"] = json
        for name, value in places.items():
            self.places[path[: path.index(f"{{{name}}}") + len(name) + 2]] = value

        async def answered() -> httpx2.Response | None:
            answer = await self.ask(method, self.filled(path) + query, json=json, timeout=WITHIN_S)
            # Tracing may not know yet a job that has just ended.
            return answer if answer.status_code != 503 else None

        answer = await until(answered, why=f"{method} {path} is answered")
        assert answer and answer.is_success, (method, path, answer and answer.text)
        if tag := answer.headers.get("etag"):
            self.tags[path] = tag
        return answer.json() if answer.content else {}

    def filled(self, path: str) -> str:
        """Return a path with the tenant's values in the place of names."""
        return fill(path, self.places)

    def has(self, path: str) -> bool:
        return all(path[: found.end()] in self.places for found in re.finditer(r"\{\w+\}", path))


def fill(path: str, places: dict[str, str]) -> str:
    """Return a path with values in the place of its names; `1` where there is none."""
    return re.sub(r"\{\w+\}", lambda found: quote(places.get(path[: found.end()], "1"), safe=""), path)


async def make_everything(t: Tenant) -> None:
    """Have a tenant make one of everything."""
    word, name = t.word, t.name
    agent = f"{name}-agent"
    for text in ("first", "last"):
        await t.make("PUT", "/v1/agents/{name}", {"instructions": f"{word} {text}"}, name=agent)
    t.places["/v1/agents/{name}/versions/{number}"] = "1"
    await t.make("PUT", "/v1/agents/{name}/labels/{label}", {"version": 1}, name=agent, label=f"{name}-label")
    await _make_configuration(t, agent)
    await _make_knowledge(t)
    await _make_jobs(t, agent)
    assert all(t.places.values()), t.places
    await until(lambda: _all_told(t), why="tracing has told of all jobs")


async def _all_told(t: Tenant) -> bool:
    jobs = (await t.ask("GET", "/v1/jobs")).json()["jobs"]
    tagged = (await t.ask("GET", "/v1/jobs", params={"tag": f"{t.name}:2"})).json()["jobs"]
    acted = (await t.ask("GET", t.filled("/v1/jobs/actions/{action_id}"))).json()
    return (
        len(jobs) == 2
        and {job["status"] for job in jobs} == {"completed"}
        and bool(tagged)
        and acted["state"] == "done"
    )


async def _make_configuration(t: Tenant, agent: str) -> None:
    word, name = t.word, t.name
    await t.make("PUT", "/v1/budgets/{name}", {"limit_usd": "7.77", "agent": agent}, name=f"{name}-budget")
    job = {"agent": agent, "input": f"{word}?"}
    await t.make("PUT", "/v1/schedules/{name}", {"cron": "0 7 1 1 *", "job": job}, name=f"{name}-schedule")
    hook = {"url": f"https://{name}.example/hook", "description": word, "enabled": False}
    await t.make("PUT", "/v1/webhooks/{name}", hook, name=f"{name}-hook")
    await t.make("PUT", "/v1/mcp/secrets/{name}", {"value": word}, name=f"{name.upper()}_TOKEN")
    server = {"url": f"https://{name}.example/mcp"}
    await t.make("PUT", "/v1/mcp/servers/{name}", server, query="?enabled=false", name=f"{name}-server")
    prompt = {"description": word, "messages": [{"text": word}]}
    await t.make("PUT", "/v1/prompts/{name}", prompt, name=f"{name}-prompt")
    card = {"provider": "chat", "model": f"{name}/own", "tier": "standard", "context_window": 9_000, "tools": "native"}
    await t.make("PUT", "/v1/models/{provider}/{model}", card, provider="chat", model=f"{name}/own")
    await t.make("PATCH", "/v1/settings", {"max_steps": 77})
    for idle in ("paused", "limited"):
        await t.ask("PUT", f"/v1/agents/{name}-{idle}", json={"instructions": word})
    await t.make("POST", "/v1/pauses", {"kind": "agent", "name": f"{name}-paused", "reason": word})
    t.places |= {"/v1/pauses/{kind}": "agent", "/v1/pauses/{kind}/{name}": f"{name}-paused"}
    await t.make("POST", "/v1/running-limits", {"whose": "agent", "name": f"{name}-limited", "max_running": 3})
    t.places |= {"/v1/running-limits/{whose}": "agent", "/v1/running-limits/{whose}/{name}": f"{name}-limited"}
    key = await t.make("POST", "/v1/keys", {"name": word, "scopes": ["read"]})
    t.places["/v1/keys/{key_id}"] = key["id"]


async def _make_knowledge(t: Tenant) -> None:
    word, name = t.word, t.name
    document = {"name": f"{word}.md", "text": f"All about {word}.", "document_id": f"{name}-document"}
    await t.make("POST", "/v1/documents", document, query="?wait=30")
    t.places |= {f"/v1/{kind}/{{document_id}}": f"{name}-document" for kind in ("documents", "files")}
    subject = {"name": word, "attributes": {"about": word}}
    await t.make("PUT", "/v1/subjects/{kind}/{subject_id}", subject, kind="client", subject_id=f"{name}-subject")
    facts = [{"text": f"Lives in Bonn and keeps a {word} there.", "category": "preference"}]
    saved = await t.make("POST", "/v1/memories", {"user_id": f"{name}-user", "facts": facts})
    t.places["/v1/memories/{fact_id}"] = saved["outcomes"][0]["fact_id"]
    about = {"type": "client", "id": f"{name}-subject"}
    stored = await t.make("POST", "/v1/insights", {"subject": about, "facts": facts})
    t.places["/v1/insights/{fact_id}"] = stored["outcomes"][0]["fact_id"]
    await t.make("POST", "/v1/memories/consolidate", {"user_id": f"{name}-user"})
    forgetting = await t.make("POST", "/v1/forget", {"user_id": f"{name}-gone"})
    t.places["/v1/forget/{forget_id}"] = forgetting["forget_id"]


async def _make_jobs(t: Tenant, agent: str) -> None:
    word, name = t.word, t.name
    job_id = f"{name}-job"
    job = {"agent": agent, "input": f"Why {word}?", "job_id": job_id, "user_id": f"{name}-user"}
    job |= {"session_id": f"{name}-session", "options": {"tags": [f"{name}:1"]}}
    ended = await t.make("POST", "/v1/jobs", job, query="?wait=30")
    assert ended["status"] == "completed", ended
    t.places |= {"/v1/jobs/{job_id}": job_id, "/v1/sessions/{session_id}": f"{name}-session"}
    t.places |= {f"{door}/{{trace_id}}": ended["trace_id"] for door in ("/v1/traces", "/jaeger/api/traces")}
    await t.make("POST", "/v1/jobs/{job_id}/feedback", {"score": 1, "comment": word})
    action = {"action": "tag", "dry_run": False, "job_ids": [job_id], "add_tags": [f"{name}:2"]}
    t.places["/v1/jobs/actions/{action_id}"] = (await t.make("POST", "/v1/jobs/actions", action))["action_id"]
    answered = await t.make("POST", "/openai/v1/responses", {"model": agent, "input": f"Why {word}?"})
    t.places["/openai/v1/responses/{response_id}"] = answered["id"]
    t.places["/openai/v1/models/{model}"] = agent
