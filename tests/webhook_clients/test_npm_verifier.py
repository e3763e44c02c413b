"""The npm package `standardwebhooks` verifies what the notifier sends, also while two secrets sign."""

from __future__ import annotations

import asyncio
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest

from wayline.contracts.webhooks import RotateWebhook, SavedWebhook
from wayline.simulator.website import ReceivedRequest

from ..integration.notifier.conftest import Hooks
from ..npm import installed, node

WITHIN_S = 30
OTHER = "whsec_" + "A" * 43 + "="

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow, pytest.mark.timeout(WITHIN_S + 60)]


async def verified(request: ReceivedRequest, secret: str | None) -> dict[str, Any]:
    """Return what the package says of a request."""
    # Packages are found beside the file that imports them.
    script = shutil.copy(Path(__file__).with_name("verify.mjs"), installed("webhook_clients"))
    headers = {name: request.headers[name] for name in ("webhook-id", "webhook-timestamp", "webhook-signature")}
    given = {"secret": secret, "other": OTHER, "body": request.body.decode(), "headers": headers}
    pipes = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE, "stderr": asyncio.subprocess.PIPE}
    verifying = await asyncio.create_subprocess_exec(node(), str(script), **pipes)
    async with asyncio.timeout(WITHIN_S):
        told, errors = await verifying.communicate(orjson.dumps(given))
    assert verifying.returncode == 0, errors.decode()
    answers: dict[str, Any] = orjson.loads(told)
    return answers


async def test_the_npm_package_verifies_what_is_sent(hooks: Hooks):
    tenant, receiver = hooks.tenant(), hooks.receiver()
    hooks.clock.at = datetime.now(UTC)
    before = await hooks.put(tenant, receiver, content=True)
    after = await hooks.platform.bus.ask(RotateWebhook(tenant=tenant, name="crm"), SavedWebhook)

    await hooks.complete(tenant, "j1", answer="Grüße 🌊")

    [request] = await receiver.until_sent(1)
    for secret in (before.secret, after.secret):
        answers = await verified(request, secret)
        assert answers.pop("verified") == orjson.loads(request.body)
        assert answers == {
            "changed": "WebhookVerificationError: No matching signature found",
            "late": "WebhookVerificationError: Message timestamp too old",
            "other": "WebhookVerificationError: No matching signature found",
        }
