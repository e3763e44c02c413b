"""An images API for tests, as OpenAI's is spoken to: strict about what its models take, and with a bill."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from wayline.simulator.website import Page, ReceivedRequest, Website

KEY = "an-images-key"
GPT_MODEL = "gpt-image-1.5"
PROMPT_TOKENS = 12
"""Counted of every prompt."""
PROMPT_USD_PER_MTOK = Decimal(5)
USD = {
    ("low", "1024x1024"): Decimal("0.009"),
    ("medium", "1024x1024"): Decimal("0.034"),
    ("medium", "1536x1024"): Decimal("0.050"),
    ("medium", "1024x1536"): Decimal("0.051"),
    ("high", "1024x1024"): Decimal("0.133"),
}
_FOR_GPT = {"model", "prompt", "n", "size", "quality", "output_format", "background", "moderation"}
_FOR_OTHERS = {"model", "prompt", "n", "size", "response_format"}

Paint = Callable[[Mapping[str, Any]], bytes]
"""Returns the image for a request's body."""


@dataclass
class ImagesApi:
    """Answers `POST /v1/images/generations`, and charges for every image that it makes."""

    paint: Paint
    linked: bool = False
    """Answer with the URL of an image, as older models and other servers do."""
    asked: list[dict[str, Any]] = field(default_factory=list)
    billed_usd: list[Decimal] = field(default_factory=list)
    refusals: list[Page] = field(default_factory=list)
    """Answered first, one a request, and not charged."""
    hold: asyncio.Event | None = None
    """Charge, and keep the last byte back until it is set."""

    def forget(self) -> None:
        """Forget what was asked and charged, and what was still to be refused."""
        for remembered in (self.asked, self.billed_usd, self.refusals):
            remembered.clear()

    def website(self) -> Website:
        """Return the site to enter."""
        site = Website()
        site.pages["/v1/images/generations"] = lambda request: self._generate(request, site)
        return site

    def _generate(self, request: ReceivedRequest, site: Website) -> Page:
        if request.headers.get("authorization") != f"Bearer {KEY}":
            return error(401, "invalid_api_key", "Incorrect API key provided.")
        body = json.loads(request.body)
        self.asked.append(body)
        if self.refusals:
            return self.refusals.pop(0)
        gpt = body["model"] == GPT_MODEL
        if unknown := set(body) - (_FOR_GPT if gpt else _FOR_OTHERS):
            return error(400, "unknown_parameter", f"Unknown parameter: {sorted(unknown)[0]!r}.")
        if "\u2620" in body["prompt"]:
            return error(400, "moderation_blocked", "Your request was rejected by the safety system.")
        usd = USD[(body.get("quality", "medium"), body["size"])] + PROMPT_TOKENS * PROMPT_USD_PER_MTOK / 1_000_000
        self.billed_usd.append(usd)
        image = self.paint(body)
        answer: dict[str, Any] = {"created": 1_790_000_000, "data": [self._entry(image, site)]}
        if gpt:
            details = {"text_tokens": PROMPT_TOKENS, "image_tokens": 0}
            usage = {"input_tokens": PROMPT_TOKENS, "input_tokens_details": details, "output_tokens": 1_056}
            answer |= {"output_format": "png", "size": body["size"], "quality": body["quality"], "usage": usage}
        return Page(json.dumps(answer), media_type="application/json", hold=self.hold)

    def _entry(self, image: bytes, site: Website) -> dict[str, str]:
        if not self.linked:
            return {"b64_json": b64encode(image).decode()}
        site.pages["/made.png"] = Page(image, media_type="image/png")
        return {"url": site.url("/made.png")}


def error(status: int, code: str, message: str) -> Page:
    """Return an error as the API words it."""
    body = {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}
    return Page(json.dumps(body), status=status, media_type="application/json")
