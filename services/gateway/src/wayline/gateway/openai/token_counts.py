"""What a job used, as OpenAI's clients read it."""

from __future__ import annotations

from typing import Any

from wayline.contracts.money import Usage


def chat_usage(usage: Usage) -> dict[str, Any]:
    """Return the tokens of all model calls of a job, as chat completions name them."""
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.total,
        "prompt_tokens_details": {
            "cached_tokens": usage.cache_read,
            "cache_write_tokens": usage.cache_write_5m + usage.cache_write_1h,
            "audio_tokens": 0,
        },
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning, "audio_tokens": 0},
    }
