"""Estimate tokens where no provider has counted them."""

from __future__ import annotations

from wayline.llm.model import ModelRequest

BYTES_PER_TOKEN = 4
"""Close to what byte-pair encodings give on prose and code; dense JSON takes more tokens than this says."""


def estimate(text: str) -> int:
    """Tokens of a text, rounded up."""
    return -(-len(text.encode()) // BYTES_PER_TOKEN)


def estimate_request(request: ModelRequest) -> int:
    """Tokens of everything a request sends."""
    said = sum(estimate(message.model_dump_json()) for message in request.messages)
    offered = sum(estimate(tool.model_dump_json()) for tool in request.tools)
    return estimate(request.system) + said + offered
