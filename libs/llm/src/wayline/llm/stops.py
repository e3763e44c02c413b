"""Why a model stopped, from every provider's word for it. What is not known to be whole is not called whole."""

from __future__ import annotations

from collections.abc import Mapping

from wayline.contracts.money import Usage
from wayline.llm.model import ModelError, StopReason

WHOLE: frozenset[StopReason] = frozenset({"end", "tools"})
"""After any other stop the last call of a message may lack its end."""

STOPS: Mapping[str, StopReason] = {
    # The model had finished.
    "stop": "end",
    "end_turn": "end",
    "end": "end",
    "eos": "end",
    "eos_token": "end",
    "complete": "end",
    "completed": "end",
    "finish": "end",
    "finished": "end",
    "stop_sequence": "stop_sequence",
    # It waits for results.
    "tool_calls": "tools",
    "tool_call": "tools",
    "tool_use": "tools",
    "function_call": "tools",
    # Its output was cut.
    "length": "max_tokens",
    "max_tokens": "max_tokens",
    "max_length": "max_tokens",
    "max_output_tokens": "max_tokens",
    "max_completion_tokens": "max_tokens",
    "max_new_tokens": "max_tokens",
    "model_length": "max_tokens",
    "output_limit": "max_tokens",
    "token_limit": "max_tokens",
    # Its window is full.
    "model_context_window_exceeded": "context_full",
    "context_window_exceeded": "context_full",
    "context_length_exceeded": "context_full",
    "context_length": "context_full",
    "context_limit": "context_full",
    # Something would not have it answer.
    "refusal": "refused",
    "refused": "refused",
    "content_filter": "refused",
    "content_filtered": "refused",
    "content_policy": "refused",
    "guardrail_intervened": "refused",
    "safety": "refused",
    "image_safety": "refused",
    "recitation": "refused",
    "blocklist": "refused",
    "prohibited_content": "refused",
    "spii": "refused",
    "sensitive": "refused",
    "error_toxic": "refused",
    # It would go on if it were asked to.
    "pause_turn": "paused",
}
"""By the word in lower case; no provider's words contradict another's."""

FAILED = frozenset(
    {
        "error",
        "failed",
        "abort",
        "aborted",
        "cancelled",
        "canceled",
        "timeout",
        "server_error",
        "internal_error",
        "network_error",
        "insufficient_system_resource",
        "malformed_function_call",
        "unexpected_tool_call",
    }
)
"""Words that say that the provider broke off: another try may be answered whole."""
UNSAID = frozenset({"", "null", "none"})
"""What stands where no reason is given yet."""


def last_word(before: str | None, word: object) -> str | None:
    """Return the word that counts of those told until now: one that says that the message is not whole stays."""
    if word is None or word is False or str(word).strip().lower() in UNSAID:
        return before
    stays = before is not None and STOPS.get(before.strip().lower(), "unknown") not in WHOLE
    return before if stays else str(word)


def stop_reason(word: object, *, calls: bool, refused: bool = False, usage: Usage | None = None) -> StopReason:
    """Return our word for why a model stopped; a word that nobody knows is `unknown`.

    No word at all is the end: it is asked for once the provider has said that nothing follows, and some say no more.
    `calls`: whether the message has any. Raises ModelError where the word says that the provider broke off.
    """
    said = str(word or "").strip().lower()
    if refused:
        return "refused"
    if said in FAILED:
        raise ModelError(
            "server_error", f"the provider ended its answer with {said!r}", retryable=True, billable=True, usage=usage
        )
    stop = "end" if said in UNSAID else STOPS.get(said, "unknown")
    if stop == "end" and calls:
        return "tools"
    # Calls were announced, and none has come.
    return "unknown" if stop == "tools" and not calls else stop
