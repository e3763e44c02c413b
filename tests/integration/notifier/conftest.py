"""A notifier with a clock of the test's, and receivers on a socket."""

from __future__ import annotations

from base64 import b64encode
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest_asyncio

from wayline.contracts import events as e
from wayline.contracts.events import Event
from wayline.contracts.jobs import Failure, JobOptions, SubmitJob, Waiting
from wayline.contracts.notices import JobNamedWebhook
from wayline.contracts.webhooks import (
    GetWebhook,
    ListWebhookDeliveries,
    PutWebhook,
    SavedWebhook,
    Webhook,
    WebhookConfig,
    WebhookDelivery,
    WebhookDeliveryList,
)
from wayline.journal import Head, JobLog
from wayline.notifier.deliveries.sender import Sender
from wayline.notifier.settings import Settings
from wayline.simulator.website import Page, ReceivedRequest, Website
from wayline.testkit import Platform, until

KEYS = f"k1:{b64encode(bytes(32)).decode()}"
QUICK = {"keys": KEYS, "allowed_hosts": ("127.0.0.1:*",), "linger_ms": 2, "poll_every_s": 0.2}
TRACE = e.SpanRef(trace_id="a" * 32, span_id="b" * 16)


@dataclass
class Clock:
    """The notifier's time, which goes on when the test says so."""

    at: datetime = field(default_factory=lambda: datetime.now(UTC))

    def __call__(self) -> datetime:
        return self.at

    def pass_(self, **time: float) -> None:
        self.at += timedelta(**time)


@dataclass
class Receiver:
    """One address of a receiver: what it was sent, and what it answers."""

    url: str
    path: str
    website: Website
    answer: Callable[[int], Page] = lambda _: Page("thanks")
    """By the number of the request."""

    def __post_init__(self) -> None:
        numbers = count(1)
        self.website.pages[self.path] = lambda _: self.answer(next(numbers))

    @property
    def requests(self) -> list[ReceivedRequest]:
        return [one for one in self.website.seen if one.path == self.path]

    @property
    def ids(self) -> Counter[str]:
        return Counter(one.headers["webhook-id"] for one in self.requests)

    async def until_sent(self, number: int) -> list[ReceivedRequest]:
        """Wait until it was sent so many requests."""
        await until(lambda: len(self.requests) >= number, why=f"{number} requests came")
        return self.requests


@dataclass
class Hooks:
    """What the tests of a file share; each has tenants of its own."""

    platform: Platform
    website: Website
    clock: Clock
    numbers: Any = field(default_factory=lambda: count(1))

    @property
    def sender(self) -> Sender:
        return next(part for part in self.platform.services["notifier"].parts if isinstance(part, Sender))

    def receiver(self, **fields: Any) -> Receiver:
        """Make an address that nobody else sends to."""
        path = f"/hooks/{next(self.numbers)}"
        return Receiver(self.website.url(path), path, self.website, **fields)

    def tenant(self) -> str:
        return f"tenant-{next(self.numbers)}"

    async def put(self, tenant: str, to: Receiver | str, name: str = "crm", **config: Any) -> SavedWebhook:
        url = to if isinstance(to, str) else to.url
        config_ = WebhookConfig(url=url, **config)
        return await self.platform.bus.ask(PutWebhook(tenant=tenant, name=name, config=config_), SavedWebhook)

    async def webhook(self, tenant: str, name: str = "crm") -> Webhook:
        return await self.platform.bus.ask(GetWebhook(tenant=tenant, name=name), Webhook)

    async def deliveries(self, tenant: str, name: str = "crm", **asked: Any) -> tuple[WebhookDelivery, ...]:
        request = ListWebhookDeliveries(tenant=tenant, name=name, **asked)
        return (await self.platform.bus.ask(request, WebhookDeliveryList)).deliveries

    async def delivery(
        self, tenant: str, test: Callable[[WebhookDelivery], bool], name: str = "crm"
    ) -> WebhookDelivery:
        """Wait for a delivery of which something is true."""

        async def found() -> WebhookDelivery | None:
            return next(filter(test, await self.deliveries(tenant, name)), None)

        return await until(found, why="there is such a delivery")

    async def pass_time(self, **time: float) -> None:
        """Let the clock go on, and have what is due then sent."""
        self.clock.pass_(**time)
        self.sender.wake()

    # Jobs

    async def begin(self, tenant: str, job_id: str, *, agent: str = "assistant", **options: Any) -> Head:
        """Write the first record of a job."""
        job = SubmitJob(
            agent=agent, input="go", job_id=job_id, user_id="ann", options=JobOptions.model_validate(options)
        )
        submitted = e.JobSubmitted(**self.told(job_id, 1), tenant=tenant, job=job, content_hash="h")
        if job.options.webhook is not None:
            notice = JobNamedWebhook(tenant=tenant, job_id=job_id)
            await self.platform.bus.publish(notice, msg_id=notice.msg_id)
        log = JobLog(self.platform.bus, tenant, job_id)
        return await log.begin([submitted], content_hash="h", lane="interactive")

    async def complete(self, tenant: str, job_id: str, answer: str = "42", **begun: Any) -> None:
        """Write the log of a job that completed."""
        head = await self.begin(tenant, job_id, **begun)
        await self.append(tenant, job_id, head, e.JobCompleted(**self.told(job_id, 2), answer=answer, steps=1))

    async def fail(self, tenant: str, job_id: str) -> None:
        head = await self.begin(tenant, job_id)
        error = Failure(code="tool_failed", message="the bank said no")
        await self.append(tenant, job_id, head, e.JobFailed(**self.told(job_id, 2), error=error))

    async def cancel(self, tenant: str, job_id: str) -> None:
        head = await self.begin(tenant, job_id)
        await self.append(tenant, job_id, head, e.JobCancelled(**self.told(job_id, 2), reason="enough", by="ann"))

    async def park(self, tenant: str, job_id: str, **waiting: Any) -> Head:
        head = await self.begin(tenant, job_id)
        parked = e.JobParked(**self.told(job_id, 2), waiting=Waiting.model_validate(waiting), signals_seen=0)
        return await self.append(tenant, job_id, head, parked)

    async def append(self, tenant: str, job_id: str, head: Head, *events: Event) -> Head:
        return await JobLog(self.platform.bus, tenant, job_id).append(events, head)

    def told(self, job_id: str, seq: int) -> dict[str, Any]:
        return {"job_id": job_id, "seq": seq, "at": self.clock.at, "trace": TRACE}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def hooks(module_platform: Platform) -> AsyncIterator[Hooks]:
    """Start a notifier, which may send to this machine."""
    clock = Clock()
    async with Website() as website:
        settings = Settings.model_validate(QUICK)
        await module_platform.start("notifier", notifier=settings, build={"notifier": {"clock": clock}})
        yield Hooks(module_platform, website, clock)
