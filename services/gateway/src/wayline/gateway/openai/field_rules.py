"""Fields of OpenAI's requests that no agent can heed: refused by name, or passed over where nothing depends on them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from wayline.gateway.errors import UnsupportedParameter

NEUTRAL: Final[Mapping[str, tuple[Any, ...]]] = {
    "include": (),
    "n": (1,),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "logit_bias": ({},),
    "audio": (),
    "modalities": (["text"],),
    "service_tier": ("auto", "default"),
    "stop": ("", []),
    "prediction": (),
    "web_search_options": (),
    "moderation": (),
    "functions": ([],),
    "function_call": ("none", "auto"),
    "max_tool_calls": (),
    "prompt": (),
    "truncation": ("disabled", "auto"),
    "context_management": ([],),
    "background_options": ({},),
    "access_programs": ({},),
    "image": (),
}
"""Fields that would change the answer, and the values of each that change nothing; null always does."""
PASSED_OVER: Final = frozenset(
    {
        *("top_p", "seed", "presence_penalty", "frequency_penalty", "verbosity"),
        *("prompt_cache_key", "prompt_cache_retention", "prompt_cache_options", "safety_identifier"),
        "obfuscation",
    }
)
"""Hints that an agent does without: how it samples and what it caches is its own."""
INCLUDABLE: Final = frozenset(
    {
        *("reasoning.encrypted_content", "web_search_call.results", "web_search_call.action.sources"),
        *("file_search_call.results", "code_interpreter_call.outputs", "computer_call_output.output.image_url"),
    }
)
"""Values of `include` that ask for more of items which no answer here has."""
_WHY: Final = {
    "n": "a job has one answer",
    "functions": "send them as `tools`",
    "service_tier": "leave it out, or send auto or default",
    "audio": "agents answer in text",
    "modalities": "agents answer in text",
}


def refuse_unsupported(fields: Mapping[str, Any], *, also: Collection[str] = ()) -> None:
    """Pass for fields that change nothing here. Raises UnsupportedParameter. `also`: more that are passed over."""
    for name, value in fields.items():
        if value is None or name in PASSED_OVER or name in also:
            continue
        if name == "include" and isinstance(value, list) and INCLUDABLE.issuperset(map(str, value)):
            continue
        if name not in NEUTRAL:
            raise UnsupportedParameter(name, "it is not known here", code="unknown_parameter")
        if not any(value == neutral and type(value) is type(neutral) for neutral in NEUTRAL[name]):
            raise UnsupportedParameter(name, _WHY.get(name, "leave it out"))
