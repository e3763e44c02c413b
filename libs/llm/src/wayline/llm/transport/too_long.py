"""How providers say that a prompt is too long, where no code says it: a table of their words."""

from __future__ import annotations

import re

SAID = (
    # OpenAI and all that answer as it does; llama.cpp, LM Studio, Ollama, MiniMax.
    r"context[_ ](length|window|size|limit)",
    r"exceeds? the (model'?s )?(maximum )?context",
    # Anthropic, Bedrock, Fireworks.
    r"(prompt|input) is too long",
    # Cohere, and older ones of OpenAI.
    r"too many (input |prompt )?tokens",
    r"maximum (number of )?(input |prompt )?tokens",
    # Gemini, GitHub.
    r"(input|prompt) token count",
    # Text Generation Inference, Together.
    r"`inputs`( tokens \+ `max_new_tokens`)? must (be <=|have less than)",
    # xAI.
    r"maximum prompt length",
    # DashScope, Qianfan.
    r"(range of|max(imum)?) input length",
    # Zhipu.
    r"prompt exceeds (the )?max(imum)? length",
    # Moonshot.
    r"exceed(s|ed)? (the )?model('s)? token limit",
    # SambaNova.
    r"max_sequence_length",
    # Groq, Cerebras.
    r"reduce the length of (the |your )?(messages|prompt|input)",
    # Bedrock, of a whole request.
    r"expected maxLength",
)
TOO_LONG = re.compile("|".join(f"(?:{words})" for words in SAID), re.IGNORECASE)
