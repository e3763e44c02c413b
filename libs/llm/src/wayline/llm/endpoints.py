"""Where each provider is and which key opens it: the variables that executors, routers and the doctor all read."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from pydantic import BaseModel, Field, field_validator

ANTHROPIC = "https://api.anthropic.com"
OPENAI = "https://api.openai.com/v1"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A provider that can be called; a server of one's own may want no key."""

    base_url: str
    api_key: str | None = field(default=None, repr=False)


class EndpointSettings(BaseModel):
    """To be mixed into a service's settings, which must be populated by name too."""

    anthropic_api_key: str | None = Field(
        default=None, validation_alias="ANTHROPIC_API_KEY", repr=False, description="Claude, by the Messages API."
    )
    anthropic_base_url: str | None = Field(
        default=None,
        validation_alias="ANTHROPIC_BASE_URL",
        description="Where that is, if not at Anthropic; needs no key then.",
    )
    openai_api_key: str | None = Field(
        default=None, validation_alias="OPENAI_API_KEY", repr=False, description="OpenAI, by the Responses API."
    )
    openai_base_url: str | None = Field(
        default=None,
        validation_alias="OPENAI_BASE_URL",
        description="Where that is, if not at OpenAI; needs no key then.",
    )
    chat_base_url: str | None = Field(
        default=None, validation_alias="WAYLINE_CHAT_BASE_URL", description="A Chat Completions endpoint."
    )
    chat_api_key: str | None = Field(
        default=None, validation_alias="WAYLINE_CHAT_API_KEY", repr=False, description="Its key, where it wants one."
    )

    @field_validator("anthropic_base_url", "openai_base_url", "chat_base_url")
    @classmethod
    def _called_over_http(cls, url: str | None) -> str | None:
        if url and not re.match(r"https?://[^/\s:]", url):
            raise ValueError("this is not of the form http://host:port/path")
        return url

    def endpoints(self) -> dict[str, Endpoint]:
        """Return every configured provider beside the offline one; an empty variable counts as unset."""
        configured = {
            "anthropic": (
                self.anthropic_base_url or (ANTHROPIC if self.anthropic_api_key else ""),
                self.anthropic_api_key,
            ),
            "openai": (self.openai_base_url or (OPENAI if self.openai_api_key else ""), self.openai_api_key),
            "chat": (self.chat_base_url, self.chat_api_key),
        }
        return {name: Endpoint(url, key or None) for name, (url, key) in configured.items() if url}
