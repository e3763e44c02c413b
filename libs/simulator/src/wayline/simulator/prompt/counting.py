"""The simulator's one way to count tokens, the same for every provider and for what goes in and comes out.

A content block costs `BLOCK_TOKENS` and a token for each `TOKEN_BYTES` of its text, begun ones counted. A tool's text
is its name, description and schema as JSON; a call's its name and its arguments as compact JSON; a result's its
content. What images and PDFs cost beside that is in `media.py`. Nothing else costs anything, so a prompt's tokens are
the sum of its blocks', and a prefix that ends with a block has an exact size.
"""

from __future__ import annotations

BLOCK_TOKENS = 3
TOKEN_BYTES = 4
IMAGE_TOKENS = 1_500
"""Of which nothing more is known."""
PAGE_TOKENS = 2_350
"""Of a PDF: what a page of text was measured to cost on Claude."""


def block_tokens(text: str | bytes) -> int:
    """Count the tokens of a content block with this text."""
    size = len(text.encode()) if isinstance(text, str) else len(text)
    return BLOCK_TOKENS + -(-size // TOKEN_BYTES)
