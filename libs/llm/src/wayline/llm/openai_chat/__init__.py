"""Chat Completions over plain HTTP: any endpoint that speaks it (Ollama, vLLM, a gateway, a test server)."""

from wayline.llm.openai_chat.adapter import ChatCompletions
from wayline.llm.openai_chat.reply import Reply
from wayline.llm.openai_chat.request import build_body

__all__ = ["ChatCompletions", "Reply", "build_body"]
