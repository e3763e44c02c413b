"""Estimate tokens where no provider has counted them."""

from __future__ import annotations

import string
from collections.abc import Iterable
from fractions import Fraction

from wayline.contracts.chat import NO_TEXT
from wayline.contracts.tools import ToolDefinition
from wayline.llm.model import ModelRequest

BYTES_PER_TOKEN = 4
"""Close to what byte-pair encodings give on prose."""
WORDS = (string.ascii_letters + " \n").encode()
"""What words are made of. Digits, signs and all that is not ASCII take more tokens a byte."""
DENSEST = Fraction(8, 3)
"""How many times the estimated tokens a text can have: one for each byte that is not of words, the most there can be,
for an estimate counts those half as much again; and one for each byte and a half of words."""
DENSE_LEADS = bytes(range(0xE3, 0xEE))
"""The first bytes of characters of Chinese, Japanese and Korean (U+3000 to U+DFFF): about 0.6 of them are a token."""
DEFINITION = {"name", "description", "input_schema"}
"""What providers are sent of a tool."""
WIRE_TOKENS_MAX = 16
"""What a provider's own format adds to a message or a tool."""


def estimate(text: str) -> int:
    """Estimate the tokens of a text, rounded up."""
    return estimate_bytes(text.encode())


def estimate_bytes(text: bytes) -> int:
    """Estimate the tokens of a text in UTF-8, rounded up."""
    return -(-weight(text) // BYTES_PER_TOKEN)


def weight(text: bytes) -> int:
    """Return the bytes of a text, with those that are not of words counted half as much again.

    A character of Chinese, Japanese or Korean counts as six and a half bytes.
    """
    size = len(text) + len(text.translate(None, WORDS)) // 2
    return size if text.isascii() else size + 2 * _dense(text)


def width(text: bytes) -> int:
    """Return the bytes of a text, with characters of Chinese, Japanese and Korean counted as six and a half."""
    return len(text) if text.isascii() else len(text) + 7 * _dense(text) // 2


def _dense(text: bytes) -> int:
    return len(text) - len(text.translate(None, DENSE_LEADS))


def most(estimated: int, *, pieces: int) -> int:
    """Return the most tokens that a prompt of so many messages and tools can turn out to have."""
    # Rounded up in integers: a `Fraction` of its own for each call costs ten times as much.
    return -(-estimated * DENSEST.numerator // DENSEST.denominator) + pieces * WIRE_TOKENS_MAX


def estimate_definitions(tools: Iterable[ToolDefinition]) -> int:
    """Estimate the tokens of definitions as a provider is sent them: name, description and schema."""
    return sum(estimate(tool.model_dump_json(include=DEFINITION)) for tool in tools)


def estimate_request(request: ModelRequest) -> int:
    """Estimate the tokens of everything a request sends."""
    history = sum(estimate(message.model_dump_json(exclude=NO_TEXT)) for message in request.messages)
    offered = sum(estimate(tool.model_dump_json()) for tool in request.tools)
    return estimate(request.system) + history + offered
