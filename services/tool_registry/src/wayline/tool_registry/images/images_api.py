"""An images API in the form of OpenAI's: `POST {base}/images/generations`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from wayline.contracts.image_models import ImageQuality, ImageShape
from wayline.contracts.images import Image, seen
from wayline.documents import without_controls
from wayline.guarded_http import (
    BadStatus,
    Blocked,
    GuardedClient,
    GuardedRequestError,
    InvalidUrl,
    Limits,
    TooLarge,
)
from wayline.tool_registry.images.image_bytes import decoded, is_data_uri, is_whole
from wayline.tool_registry.images.image_prices import PROMPT_BYTES_MAX, ImagePrices

SIZES: Mapping[ImageShape, str] = MappingProxyType(
    {"square": "1024x1024", "landscape": "1536x1024", "portrait": "1024x1536"}
)
GPT_IMAGE = ("gpt-image", "chatgpt-image")
"""How the names of models begin that take a quality and always answer with the bytes."""
ANSWER_ROOM_BYTES = 64 * 1024
"""Of an answer beside its image."""
REASON_CHARS_MAX = 300
_MODERATED = frozenset({"moderation_blocked", "content_policy_violation"})
_UNPAID = frozenset({"insufficient_quota", "billing_hard_limit_reached", "enforced_spend_limit_reached"})
_BUSY = frozenset({429, 503})
_NOTHING = Decimal(0)
_MALFORMED = (ValueError, KeyError, TypeError, AttributeError, RecursionError)
"""What reading an answer raises that is none of an images API."""


@dataclass(frozen=True, slots=True)
class ImageRequest:
    """One image to be made."""

    prompt: str
    shape: ImageShape
    quality: ImageQuality


@dataclass(frozen=True, slots=True)
class MadeImage:
    """An image with its bytes, and what it cost."""

    content: bytes
    kind: Image
    cost_usd: Decimal
    revised_prompt: str = ""


class ImageFailed(Exception):
    """No image came; what to tell the model, and what it cost: None where it is not known."""

    def __init__(self, message: str, *, cost_usd: Decimal | None = _NOTHING) -> None:
        super().__init__(message)
        self.cost_usd = cost_usd


class ImagesAway(Exception):
    """The provider does not answer, and has not begun."""


class ImagesApi:
    """Makes images with one model of one provider."""

    def __init__(
        self,
        client: GuardedClient,
        *,
        base_url: str,
        key: str | None,
        model: str,
        prices: ImagePrices,
        timeout_s: float,
        image_max_bytes: int,
    ) -> None:
        self._client = client
        self._url = f"{base_url.rstrip('/')}/images/generations"
        self._key = key
        self._prices = prices
        self._image_max_bytes = image_max_bytes
        # In base64 a third longer, and more with line breaks.
        self._limits = Limits(body_max_bytes=image_max_bytes * 3 // 2 + ANSWER_ROOM_BYTES, total_s=timeout_s)
        self.model = model

    async def make(self, request: ImageRequest) -> MadeImage:
        """Return one image. Raises ImageFailed or ImagesAway."""
        cost_usd = self._prices.of_image(request.quality, request.shape, prompt_tokens=len(request.prompt.encode()))
        try:
            answer = await self._client.request(
                "POST", self._url, headers=self._headers(), content=self._body(request), limits=self._limits
            )
        except TooLarge as error:
            raise ImageFailed(f"an image came that is too large: {error}", cost_usd=cost_usd) from error
        except GuardedRequestError as error:
            raise self._failure(error) from error
        try:
            # Some providers break the lines of base64 with plain line ends, which JSON does not allow.
            value = json.loads(answer.content, strict=False)
            [entry] = value["data"]
            cost_usd = self._prices.of_image(
                request.quality, request.shape, prompt_tokens=_prompt_tokens(value, request.prompt)
            )
            content = await self._content(entry, cost_usd)
        except _MALFORMED as error:
            reason = "the provider answered with what is no image: is WAYLINE_TOOL_REGISTRY_IMAGE_BASE_URL its address?"
            raise ImageFailed(reason, cost_usd=None) from error
        return self._checked(content, str(entry.get("revised_prompt") or ""), cost_usd)

    def _headers(self) -> dict[str, str]:
        headers = {"accept": "application/json", "content-type": "application/json"}
        return headers | ({"authorization": f"Bearer {self._key}"} if self._key else {})

    def _body(self, request: ImageRequest) -> bytes:
        body: dict[str, Any] = {
            "model": self.model,
            "prompt": request.prompt,
            "n": 1,
            "size": SIZES[request.shape],
        }
        if self.model.startswith(GPT_IMAGE):
            body |= {"quality": request.quality, "output_format": "png"}
        else:
            body["response_format"] = "b64_json"
        return json.dumps(body).encode()

    async def _content(self, entry: Mapping[str, Any], cost_usd: Decimal) -> bytes:
        """Return the bytes of an image, which some providers only link to."""
        if encoded := entry.get("b64_json"):
            return decoded(encoded)
        url = entry["url"]
        if is_data_uri(url):
            return decoded(url)
        try:
            return (await self._client.get(url, limits=self._limits)).content
        except GuardedRequestError as error:
            raise ImageFailed(f"the image was made and could not be fetched: {error}", cost_usd=cost_usd) from error

    def _checked(self, content: bytes, revised_prompt: str, cost_usd: Decimal) -> MadeImage:
        kind = seen(content)
        if kind is None:
            raise ImageFailed("the provider answered with what is no PNG, JPEG, GIF or WebP", cost_usd=cost_usd)
        if not is_whole(content, kind.media_type):
            raise ImageFailed(f"the image that came breaks off after {len(content)} bytes", cost_usd=cost_usd)
        if len(content) > self._image_max_bytes:
            message = f"the image has {len(content)} bytes, above the limit of {self._image_max_bytes}"
            raise ImageFailed(message, cost_usd=cost_usd)
        return MadeImage(content, kind, cost_usd, without_controls(revised_prompt))

    def _failure(self, error: GuardedRequestError) -> ImageFailed | ImagesAway:
        import httpx2

        if isinstance(error, BadStatus):
            return self._refusal(error)
        if isinstance(error, Blocked | InvalidUrl):
            return ImageFailed(f"WAYLINE_TOOL_REGISTRY_IMAGE_BASE_URL cannot be called: {error}")
        if isinstance(error.__cause__, httpx2.ConnectError):
            return ImagesAway(f"the images API does not answer: {error}")
        return ImageFailed(f"the images API did not answer in full, and may have charged: {error}", cost_usd=None)

    def _refusal(self, error: BadStatus) -> ImageFailed | ImagesAway:
        code, reason = _reason(error.content)
        if code in _MODERATED:
            return ImageFailed("the provider refuses this prompt by its rules: describe another image")
        if code in _UNPAID:
            return ImageFailed(f"the provider's account has no credit for images: {reason}")
        if error.status in _BUSY:
            return ImagesAway(f"the images API takes no more for now ({error.status}): try again in a minute")
        if error.status in (401, 403):
            return ImageFailed(
                "the provider refuses images: WAYLINE_TOOL_REGISTRY_IMAGE_KEY is wrong, or may not make any"
            )
        if error.status >= 500:
            return ImageFailed(f"the images API failed with status {error.status}, and may have charged", cost_usd=None)
        return ImageFailed(f"the provider refuses this image with status {error.status}: {reason or 'no reason given'}")


def _reason(content: bytes) -> tuple[str, str]:
    """Return the code and the words of a provider's error."""
    try:
        error = json.loads(content)["error"]
        return str(error.get("code") or error.get("type") or ""), str(error.get("message") or "")[:REASON_CHARS_MAX]
    except _MALFORMED:
        return "", ""


def _prompt_tokens(answer: Mapping[str, Any], prompt: str) -> int:
    """Return how many tokens the provider counted of a prompt; as many as it can have where it names none.

    Never more than what was held for the call: a provider may count words of its own, but no novel.
    """
    usage = answer.get("usage")
    details = usage.get("input_tokens_details") if isinstance(usage, dict) else None
    counted = details.get("text_tokens") if isinstance(details, dict) else None
    if isinstance(counted, int) and counted >= 0:
        return min(counted, PROMPT_BYTES_MAX)
    return len(prompt.encode())
