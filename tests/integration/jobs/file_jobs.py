"""Jobs that are given files: what several tests of them set the same way."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import httpx2

from wayline.contracts.jobs import JobView
from wayline.executor.settings import Settings as ExecutorSettings
from wayline.router.settings import Settings as RouterSettings
from wayline.simulator import Asked, Say, Simulator, rounds
from wayline.testkit import Platform, until
from wayline.testkit.media import pdf, png

from .four_models import FACTS, endpoints, put_own

IMAGE, PDF = png(640, 480), pdf("The cat is on page one.", "The dog is on page two.")
LOOKS = rounds(Say(tools=(("get_current_time", {}),)), Say(text="A cat and a dog."))
SERVICES = ("gateway", "router", "retrieval", "tool_registry")


@dataclass
class FileJobs:
    """Jobs that are given files: the platform, the simulated providers, and an HTTP client that uploads."""

    platform: Platform
    simulator: Simulator
    http: httpx2.AsyncClient

    async def upload(self, document_id: str, name: str, content: bytes) -> dict[str, Any]:
        """Add a file and wait until it is ready."""
        response = await self.http.post(
            "/v1/documents", params={"wait": 20}, data={"document_id": document_id}, files={"file": (name, content)}
        )
        if response.status_code == 202:
            # The first file waits for its reader to be started, on a busy machine for longer than an upload may.
            document = await until(lambda: self._read(document_id), within=60, why=f"{name} is read")
            assert document is not None
            return document
        assert response.status_code == 200, response.text
        return response.json()

    async def _read(self, document_id: str) -> dict[str, Any] | None:
        document = (await self.http.get(f"/v1/documents/{document_id}")).json()
        return document if document["status"] == "ready" else None

    async def run(self, job_id: str, *parts: dict[str, Any], agent: str = "looker", **options: Any) -> JobView:
        await self.submit(job_id, *parts, agent=agent, **options)
        return await self.platform.wait_for(job_id)

    async def run_from_the_bus(
        self, job_id: str, *parts: dict[str, Any], agent: str = "looker", **options: Any
    ) -> JobView:
        """Run a job that only the router looks at before it is accepted."""
        body = {"agent": agent, "input": [text("What is it?"), *parts], "job_id": job_id, "options": options}
        await self.platform.publish(body)
        return await self.platform.wait_for(job_id)

    async def submit(self, job_id: str, *parts: dict[str, Any], agent: str = "looker", **options: Any) -> None:
        body = {"agent": agent, "input": [text("What is it?"), *parts], "job_id": job_id, "options": options}
        response = await self.http.post("/v1/jobs", json=body)
        assert response.status_code == 202, response.text

    async def agent(self, name: str = "looker", **config: Any) -> httpx2.Response:
        return await self.http.put(
            f"/v1/agents/{name}", json={"instructions": "Look.", "tools": ["get_current_time"], **config}
        )

    async def executor(self, **settings: Any) -> None:
        await self.platform.start("executor", executor=ExecutorSettings(**endpoints(self.simulator), **settings))

    def requests(self) -> list[Asked]:
        """The requests of the tenant's jobs, as the provider got them."""
        return [asked for asked in self.simulator.requests if asked.attempt.startswith(f"{self.platform.tenant}/")]

    def sent(self, job_id: str) -> list[list[bytes]]:
        """The images and files in each of a job's requests, as the provider got them."""
        calls = f"{self.platform.tenant}/{job_id}/"
        return [[*files_in(asked.body)] for asked in self.requests() if asked.attempt.startswith(calls)]

    def billed(self, job_id: str) -> Decimal:
        calls = f"{self.platform.tenant}/{job_id}/"
        return sum((one.usd for one in self.simulator.bill.charges if one.attempt.startswith(calls)), Decimal(0))


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def image(document_id: str, **more: Any) -> dict[str, Any]:
    return {"type": "image", "document_id": document_id, **more}


def file(document_id: str, **more: Any) -> dict[str, Any]:
    return {"type": "file", "document_id": document_id, **more}


def files_in(value: Any) -> Any:
    """What is in a body in base64, whichever wire format has it."""
    if isinstance(value, dict):
        for key, held in value.items():
            if key == "data" or (isinstance(held, str) and held.startswith("data:")):
                yield base64.b64decode(held.rpartition(",")[2])
            else:
                yield from files_in(held)
    elif isinstance(value, list):
        for held in value:
            yield from files_in(held)


async def opened(platform: Platform, script: Any) -> FileJobs:
    simulator = await platform.simulate(script, models=FACTS)
    await platform.start(*SERVICES, router=RouterSettings(**endpoints(simulator)))
    await put_own(platform)
    jobs = FileJobs(platform, simulator, await platform.http())
    assert (await jobs.agent()).status_code == 200
    return jobs
