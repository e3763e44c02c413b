"""Claude, by the Messages API."""

from wayline.llm.anthropic.adapter import Anthropic

__all__ = ["Anthropic"]
