"""OpenAI's models, by the Responses API; nothing is kept on their side."""

from wayline.llm.openai.adapter import OpenAI

__all__ = ["OpenAI"]
